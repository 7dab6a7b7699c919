"""Many runs of the GCN family trained at once."""
