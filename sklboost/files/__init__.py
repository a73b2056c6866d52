"""Models outside of Python: model files, and the models of other libraries."""
