"""Fitting: from the user's arguments and parameters to a trained model, without the estimator."""
