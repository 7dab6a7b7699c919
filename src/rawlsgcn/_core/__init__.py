"""What every room uses: errors, atomic files, sparse matrices, threads and the compiled kernels."""
