"""LightGBM's text models, read and written."""
