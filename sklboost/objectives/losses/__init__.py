"""Losses: value, gradient, hessian, link and start value of each, side by side."""
