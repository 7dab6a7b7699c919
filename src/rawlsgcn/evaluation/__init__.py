"""Judging predictions by degree, and the influence of each node on the gradient (Theorem 1)."""
