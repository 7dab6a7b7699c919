"""Errors, argument checks, atomic files, sparse matrices, threads and the compiled kernels."""
