"""Gradient boosting in Python that can be read, with the same model on any number of threads."""

import typing as _typing
from pkgutil import resolve_name as _resolve_name
from sys import _getframe
from sys import modules as _modules

# first: imported by our modules, one part after another, scikit-learn takes 0.07 s more, since
# Python collects garbage at worse moments
import sklearn.base as _base  # noqa: F401

from sklboost.boosting.callbacks import EarlyStopping, LearningRateScheduler, TrainingCallback
from sklboost.data.binned_matrix import BinnedMatrix
from sklboost.estimators.classifier import XGBClassifierLite
from sklboost.estimators.input.features import UnknownCategoryWarning
from sklboost.estimators.parameters.names import OTHER_MEMBERS as _OTHER_MEMBERS
from sklboost.estimators.regressor import XGBRegressorLite
from sklboost.objectives.loss import Loss
from sklboost.show_versions import show_versions
from sklboost.version import __version__ as __version__
from sklboost.warmup import warmup

if _typing.TYPE_CHECKING:
    from sklboost import displays as displays
    from sklboost import onnx as onnx
    from sklboost import shap as shap
    from sklboost.boosting.callbacks import Checkpoint
    from sklboost.displays import plot_importance, plot_tree
    from sklboost.estimators.distribution import XGBDistributionLite
    from sklboost.estimators.fit.check_loss import check_loss
    from sklboost.estimators.forests import XGBRFClassifierLite, XGBRFRegressorLite
    from sklboost.estimators.input.bins import bin_features, bin_parquet, open_bins
    from sklboost.estimators.input.survival_targets import survival_targets
    from sklboost.estimators.loading import (
        from_hist_gradient_boosting,
        from_lightgbm,
        from_xgboost,
        load_model,
    )
    from sklboost.estimators.ranker import XGBRankerLite
    from sklboost.estimators.survival import XGBSurvivalLite
    from sklboost.files.sections import ModelFileError

__all__ = [
    "BinnedMatrix",
    "Checkpoint",
    "EarlyStopping",
    "LearningRateScheduler",
    "Loss",
    "ModelFileError",
    "TrainingCallback",
    "UnknownCategoryWarning",
    "XGBClassifierLite",
    "XGBDistributionLite",
    "XGBRFClassifierLite",
    "XGBRFRegressorLite",
    "XGBRankerLite",
    "XGBRegressorLite",
    "XGBSurvivalLite",
    "bin_features",
    "bin_parquet",
    "check_loss",
    "from_hist_gradient_boosting",
    "from_lightgbm",
    "from_xgboost",
    "load_model",
    "open_bins",
    "plot_importance",
    "plot_tree",
    "show_versions",
    "survival_targets",
    "warmup",
]

# Imported when they are first asked for, since most programs need none of them.
_LATER = {
    "ModelFileError": "sklboost.files.sections:ModelFileError",
    "Checkpoint": "sklboost.boosting.callbacks:Checkpoint",
    "XGBDistributionLite": "sklboost.estimators.distribution:XGBDistributionLite",
    "XGBRFClassifierLite": "sklboost.estimators.forests:XGBRFClassifierLite",
    "XGBRFRegressorLite": "sklboost.estimators.forests:XGBRFRegressorLite",
    "XGBRankerLite": "sklboost.estimators.ranker:XGBRankerLite",
    "XGBSurvivalLite": "sklboost.estimators.survival:XGBSurvivalLite",
    "bin_features": "sklboost.estimators.input.bins:bin_features",
    "bin_parquet": "sklboost.estimators.input.bins:bin_parquet",
    "check_loss": "sklboost.estimators.fit.check_loss:check_loss",
    "displays": "sklboost.displays:",
    "from_hist_gradient_boosting": "sklboost.estimators.loading:from_hist_gradient_boosting",
    "from_lightgbm": "sklboost.estimators.loading:from_lightgbm",
    "from_xgboost": "sklboost.estimators.loading:from_xgboost",
    "load_model": "sklboost.estimators.loading:load_model",
    "onnx": "sklboost.onnx:",
    "open_bins": "sklboost.estimators.input.bins:open_bins",
    "plot_importance": "sklboost.displays:plot_importance",
    "plot_tree": "sklboost.displays:plot_tree",
    "shap": "sklboost.shap:",
    "survival_targets": "sklboost.estimators.input.survival_targets:survival_targets",
}


def __getattr__(name: str) -> object:
    """Import a name of `_LATER`; the error for another name says what to use."""
    if name in _LATER:
        try:
            globals()[name] = found = _resolve_name(_LATER[name])
        except ImportError as error:  # onnx and shap need packages, and dir() names them
            raise AttributeError(str(error), name=name, obj=_modules[__name__]) from error
        return found
    remedy = f": take {_OTHER_MEMBERS[name]}" if name in _OTHER_MEMBERS else ""
    text = f"module 'sklboost' has no attribute {name!r}{remedy}"
    # `from sklboost import name` asks from a function of importlib, which takes an AttributeError
    # for the name of a submodule and forgets the text
    if remedy and _getframe(1).f_globals.get("__name__") == "importlib._bootstrap":
        raise ImportError(f"cannot import name {name!r} from 'sklboost'{remedy}", name=__name__)
    raise AttributeError(text, name=name, obj=_modules[__name__])


def __dir__() -> list[str]:
    """Return what users call: no packages of the inside, and nothing imported from elsewhere."""
    own = {name for name in globals() if name.startswith("__")}
    return sorted({*own, *__all__, *_LATER})
