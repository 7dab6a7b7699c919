"""Speed and memory, as ratios against a named rival in the same run: ``python -m benchmarks``."""
