"""Training on the workers of a Dask cluster, with the bits of one machine."""
