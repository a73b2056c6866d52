"""Random forests: one round of many trees, each grown from rows and features of its own.

The trees of a round share its gradients and its step. With learning rate 1 and lambda near 0 every
leaf of a regression forest is the mean of its rows, and the forest the mean of its trees.
"""

from sklboost.estimators.classifier import XGBClassifierLite
from sklboost.estimators.parameters.about import documented
from sklboost.estimators.parameters.forests import ForestClassifierParameters, ForestParameters
from sklboost.estimators.regressor import XGBRegressorLite
from sklboost.model import Model


class ForestMixin(ForestParameters):
    """What makes an estimator a forest."""

    @property
    def _rounds_and_trees(self) -> tuple[int, int]:
        return 1, self.n_estimators

    def _n_estimators_of(self, model: Model) -> int:
        return model.params_of(0).num_parallel_tree


@documented
class XGBRFRegressorLite(ForestMixin, XGBRegressorLite):
    """Random forest of regression trees, with XGBoost's parameter names and defaults.

    Attributes
    ----------
    n_features_in_ : int
        Number of features at fit.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the features, where `X` had names that are all strings.
    categories_ : dict of str or int to ndarray
        Where there are categories: the levels of each, by name or number.
    model_ : Model
        The trees, as :class:`sklboost.model.Model`: one round.
    n_estimators_ : int
        Number of trees.
    stop_reason_ : str
        ``"completed"``.
    evals_result_ : dict
        ``{"validation_0": {"rmse": [0.55]}}``: the value of the whole forest.
    fit_report_ : FitReport
        Time by phase, rows, bins, trees, leaves, pruned splits, constant features, threads.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklboost import XGBRFRegressorLite
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = XGBRFRegressorLite(random_state=0)
    >>> print(round(cross_val_score(forest, X, y).mean(), 1))
    0.4
    """


@documented
class XGBRFClassifierLite(ForestMixin, ForestClassifierParameters, XGBClassifierLite):
    """Random forest of classification trees, with XGBoost's parameter names and defaults.

    Its trees add up in log-odds: log loss for two classes, softmax for more.

    Attributes
    ----------
    n_features_in_ : int
        Number of features at fit.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the features, where `X` had names that are all strings.
    categories_ : dict of str or int to ndarray
        Where there are categories: the levels of each, by name or number.
    classes_ : ndarray, shape (n_classes,)
        The labels, sorted.
    model_ : Model
        The trees, as :class:`sklboost.model.Model`: one round.
    n_estimators_ : int
        Number of trees, of each class if there are more than two.
    stop_reason_ : str
        ``"completed"``.
    evals_result_ : dict
        ``{"validation_0": {"logloss": [0.55]}}``: the value of the whole forest.
    fit_report_ : FitReport
        Time by phase, rows, bins, trees, leaves, pruned splits, constant features, threads.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklboost import XGBRFClassifierLite
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> forest = XGBRFClassifierLite(random_state=0)
    >>> print(cross_val_score(forest, X, y).mean() > 0.93)
    True
    """
