"""Edges to the nodes with the nearest features, for nodes with few neighbors."""
