"""Learning from a stream: tasks, memory, accuracy matrix."""
