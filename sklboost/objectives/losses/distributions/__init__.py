"""Losses of whole distributions: a raw score for each parameter of the distribution of a target."""
