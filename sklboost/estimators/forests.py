"""Random forests: one round of many trees, each grown from its own sample of rows and features.

The trees of a round have the same gradients and share its step. With learning rate 1 and lambda
near 0 every leaf of a regression forest is the mean of its rows, and the forest is the mean of its
trees.
"""

from sklboost.estimators.classifier import XGBClassifierLite
from sklboost.estimators.parameters.docstrings import documented
from sklboost.estimators.parameters.kinds import ForestClassifierParameters, ForestParameters
from sklboost.estimators.regressor import XGBRegressorLite


@documented(init=False)
class XGBRFRegressorLite(ForestParameters, XGBRegressorLite):
    """Random forest of regression trees, with XGBoost's parameter names and defaults.

    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklboost import XGBRFRegressorLite
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = XGBRFRegressorLite(random_state=0)
    >>> print(round(cross_val_score(forest, X, y).mean(), 1))
    0.4

    Attributes
    ----------
    n_estimators_ : int
        Number of trees, all of one round.
    stop_reason_ : str
        ``"completed"``.
    evals_result_ : dict
        ``{"validation_0": {"rmse": [0.55]}}``, of the whole forest.
    """

    _is_forest = True


@documented(init=False)
class XGBRFClassifierLite(ForestClassifierParameters, XGBClassifierLite):
    """Random forest of classification trees, with XGBoost's parameter names and defaults.

    The loss is log loss for two classes, softmax for more: trees add up in log-odds.

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklboost import XGBRFClassifierLite
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> forest = XGBRFClassifierLite(random_state=0)
    >>> print(cross_val_score(forest, X, y).mean() > 0.93)
    True

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        The labels, sorted.
    n_estimators_ : int
        Number of trees, all of one round; of each class if there are more than two.
    stop_reason_ : str
        ``"completed"``.
    evals_result_ : dict
        ``{"validation_0": {"logloss": [0.55]}}``, of the whole forest.
    """

    _is_forest = True
