"""What the paper did and said: its tables and figures as grids of work, its numbers, its claims. No torch."""
