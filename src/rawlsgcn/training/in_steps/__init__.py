"""What trainers in steps share: the loop over batches, and checkpoints."""
