"""Train and predict where the graph does not fit in memory, a batch at a time."""
