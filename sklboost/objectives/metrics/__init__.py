"""Metrics that are not the mean of an objective: wrong predictions, areas, r2."""
