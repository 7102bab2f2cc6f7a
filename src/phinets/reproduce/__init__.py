"""Doing what the living paper asks for: a store of results by key, how each kind of work is done, and by whom."""
