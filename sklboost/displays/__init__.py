"""Pictures of models with matplotlib, as scikit-learn's displays: classes, and functions for short.

matplotlib is optional: ``pip install "sklboost[plot]"``.
"""

from sklboost.displays.calibration import CalibrationDisplay, plot_calibration
from sklboost.displays.derivation import DerivationDisplay, plot_derivation
from sklboost.displays.importances import ImportanceDisplay, plot_importance
from sklboost.displays.learning_curve import LearningCurveDisplay, plot_learning_curve
from sklboost.displays.split_values import SplitValuesDisplay, plot_split_values
from sklboost.displays.tree import TreeDisplay, plot_tree

__all__ = [
    "CalibrationDisplay",
    "DerivationDisplay",
    "ImportanceDisplay",
    "LearningCurveDisplay",
    "SplitValuesDisplay",
    "TreeDisplay",
    "plot_calibration",
    "plot_derivation",
    "plot_importance",
    "plot_learning_curve",
    "plot_split_values",
    "plot_tree",
]
