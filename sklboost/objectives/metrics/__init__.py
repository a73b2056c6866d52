"""Metrics that are not the mean of a loss's value: wrong predictions, areas, r2."""
