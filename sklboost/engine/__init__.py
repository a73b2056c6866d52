"""The engine: compiled kernels, threads, and the records that several rooms pass on."""
