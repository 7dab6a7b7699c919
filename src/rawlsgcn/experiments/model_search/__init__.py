"""Train a pool of models, judge them on the validation nodes, and keep the best."""
