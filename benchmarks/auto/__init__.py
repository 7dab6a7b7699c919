"""The evaluation of ``auto`` over splits, against tuned rivals; not part of the package."""
