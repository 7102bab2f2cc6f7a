"""Runs the jobs behind the paper's tables: a store of results by key, a runner for each kind of job, and engines."""
