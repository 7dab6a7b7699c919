"""Smoothed features of graphs that do not fit in memory."""
