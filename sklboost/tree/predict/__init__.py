"""Finished trees: laid out for prediction, and added to raw scores."""
