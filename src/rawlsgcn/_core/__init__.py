"""Errors, argument checks, atomic files, sparse matrices, threads and the compiled kernels."""

__version__ = "0.1.0"
