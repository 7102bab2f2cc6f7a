"""The paper as values: its tables and figures as grids of jobs, its numbers, its claims. No torch."""
