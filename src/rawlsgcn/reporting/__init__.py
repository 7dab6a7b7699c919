"""Showing what was found: terminal tables, the paper's figures, and a page to keep.

Nothing is imported here, because the command line's light commands need only ``table``, which
loads neither matplotlib nor torch.
"""
