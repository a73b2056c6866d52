"""Fitting: reading what a fit is given, training, choosing parameters, metrics and callbacks."""
