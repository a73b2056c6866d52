"""Benchmarks of sklboost beside its peers: `benchmarks/README.md` says how to run them."""
