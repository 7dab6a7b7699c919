"""The audit: who is worst off under a model, by how much, and how sure that is."""
