"""Gradient boosting in Python that can be read, with the same model on any number of threads."""

from sklboost.estimators.classifier import XGBClassifierLite
from sklboost.estimators.regressor import XGBRegressorLite

__all__ = ["XGBClassifierLite", "XGBRegressorLite"]
__version__ = "0.1.0"
