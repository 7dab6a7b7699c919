"""Readers of files: edge lists, tables, arrays, torch files and the published raw files."""
