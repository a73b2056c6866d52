"""Boosting: rounds of loss, gradients and one tree per output, and prediction with the result."""
