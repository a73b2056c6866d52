"""Exact SHAP values and interaction values: what each feature adds to a raw score."""
