"""The kernels that only some fits run: categories, constraints, sampling, linear leaves."""
