"""Feed damaged files to every reader of the package: see docs/fuzzing.md."""
