"""The methods of estimators that write models to files and to other libraries."""
