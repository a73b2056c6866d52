"""Whole estimators as documents, and estimators of models of other libraries."""
