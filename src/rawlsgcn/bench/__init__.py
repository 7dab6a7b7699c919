"""Speed and memory, as ratios against a named rival in the same run: ``rawlsgcn bench``."""
