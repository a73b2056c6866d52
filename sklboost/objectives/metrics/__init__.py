"""Evaluation metrics: how good predictions are, as one number."""
