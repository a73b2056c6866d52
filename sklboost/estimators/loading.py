"""Models from files and from other libraries: the functions that choose the class of estimator."""

from collections.abc import Mapping

from sklboost.estimators.classifier import XGBClassifierLite
from sklboost.estimators.regressor import XGBRegressorLite

# By whether targets are classes.
KINDS: Mapping[bool, type] = {False: XGBRegressorLite, True: XGBClassifierLite}
