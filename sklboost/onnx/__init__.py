"""Models as ONNX graphs: importing this module lets skl2onnx convert the estimators.

By themselves and within pipelines, ``skl2onnx.to_onnx(pipeline, X[:1])``. It needs skl2onnx: ``pip
install "sklboost[onnx]"``.
"""

try:
    import skl2onnx as _skl2onnx  # noqa: F401
except ImportError as error:
    raise ImportError('sklboost.onnx needs skl2onnx: pip install "sklboost[onnx]"') from error

from sklboost.estimators.classifier import XGBClassifierLite
from sklboost.estimators.distribution import XGBDistributionLite
from sklboost.estimators.forests import XGBRFClassifierLite, XGBRFRegressorLite
from sklboost.estimators.ranker import XGBRankerLite
from sklboost.estimators.regressor import XGBRegressorLite
from sklboost.estimators.survival import XGBSurvivalLite
from sklboost.onnx.converters import input_types, register

__all__ = ["input_types", "register"]

for _estimator in (
    *(XGBClassifierLite, XGBRegressorLite, XGBRFClassifierLite, XGBRFRegressorLite),
    *(XGBRankerLite, XGBDistributionLite, XGBSurvivalLite),
):
    register(_estimator)
