"""Training on sampled neighborhoods, on one process or many."""
