"""XGBoost's model files: the schema of its JSON and UBJSON."""
