"""Models from files: the functions that choose the class of estimator."""

from pkgutil import resolve_name
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklboost.estimators.classifier import XGBClassifierLite
from sklboost.estimators.regressor import XGBRegressorLite


def _class_named(name: str) -> type:
    """Return the class of estimators of a name that is in files."""
    found: type = resolve_name(f"sklboost:{name}")
    return found


@np.errstate(all="ignore")
def load_model(fname: Any) -> Any:
    """Read the fitted estimator in a model file.

    Parameters
    ----------
    fname : str, path-like, file object or bytes
        What the method `save_model` has written. A file that XGBoost has written is read as
        :func:`from_xgboost` reads it.

    Returns
    -------
    XGBRegressorLite, XGBClassifierLite, or another estimator of this package
        With all parameters, and the same bits in all results.

    Raises
    ------
    ModelFileError
        If it is no model file, or is damaged: the message says where.
    OSError
        If the file cannot be read.

    See Also
    --------
    from_xgboost, from_lightgbm, from_hist_gradient_boosting : Models of other libraries.

    Notes
    -----
    Nothing in the file is executed, and all of it is checked: a file of whatever origin gives an
    error or a model. The memory it takes is a small multiple of its size.

    Examples
    --------
    >>> import os
    >>> import tempfile
    >>> from sklearn.datasets import load_diabetes
    >>> from sklboost import XGBRegressorLite, load_model
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = XGBRegressorLite(n_estimators=10).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.json")
    ...     model.save_model(path)
    ...     loaded = load_model(path)
    >>> bool((loaded.predict(X) == model.predict(X)).all())
    True
    """
    from sklboost.estimators.files.model_files import load

    return load(fname, _class_named)


@np.errstate(all="ignore")
def from_hist_gradient_boosting(estimator: Any) -> XGBRegressorLite | XGBClassifierLite:
    """Return a fitted estimator with the trees of scikit-learn's HistGradientBoosting.

    Parameters
    ----------
    estimator : HistGradientBoostingRegressor or HistGradientBoostingClassifier
        Fitted.

    Returns
    -------
    XGBRegressorLite or XGBClassifierLite
        Predicts what the estimator predicts, and has its parameters, labels, names of features
        and categories.

    Raises
    ------
    ModelFileError
        If the model has what no estimator here has: the message says what.
    TypeError
        If `estimator` is something else.
    sklearn.exceptions.NotFittedError
        If it is not fitted.

    Notes
    -----
    Covers are numbers of rows, since scikit-learn keeps no sums of hessians. Sums of gradients are
    known for squared error without weights, and for no other loss.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> from sklboost import from_hist_gradient_boosting
    >>> X, y = load_diabetes(return_X_y=True)
    >>> theirs = HistGradientBoostingRegressor(max_iter=10).fit(X, y)
    >>> ours = from_hist_gradient_boosting(theirs)
    >>> bool(abs(ours.predict(X) - theirs.predict(X)).max() < 1e-9)
    True
    """
    from sklboost.estimators.files.foreign_models import make_estimator
    from sklboost.files.hist_gradient_boosting import read_hist_gradient_boosting

    if not hasattr(type(estimator), "_predict_iterations"):
        raise TypeError(f"{estimator!r} is no HistGradientBoosting estimator of scikit-learn")
    check_is_fitted(estimator)
    return make_estimator(_class_named, *read_hist_gradient_boosting(estimator))


@np.errstate(all="ignore")
def from_lightgbm(model: Any) -> XGBRegressorLite | XGBClassifierLite:
    """Return a fitted estimator with the trees of a LightGBM model.

    Parameters
    ----------
    model : Booster, LGBMRegressor, LGBMClassifier, str, path-like, file object or bytes
        A fitted model, or one that `save_model` or `model_to_string` has written: the text itself,
        or where it is. For files LightGBM need not be installed.

    Returns
    -------
    XGBRegressorLite or XGBClassifierLite
        Predicts what the model predicts, with the rounds up to its best one if it is known.
        Labels are the classes of an LGBMClassifier; for other models 0, 1, and so on.

    Raises
    ------
    ModelFileError
        If the file is damaged, or if the model has what no estimator here has, such as an objective
        for ranking or of the user's own: the message says what.
    OSError
        If the file cannot be read.

    Notes
    -----
    ``multiclassova``: probabilities are LightGBM's divided by their sum. ``zero_as_missing``:
    ``missing=0.0``, without LightGBM's numbers nearer to 0 than 1e-35. Categories that are not
    whole numbers are unknown categories; LightGBM rounds them towards 0.

    Examples
    --------
    >>> import lightgbm
    >>> from sklearn.datasets import load_diabetes
    >>> from sklboost import from_lightgbm
    >>> X, y = load_diabetes(return_X_y=True)
    >>> theirs = lightgbm.LGBMRegressor(n_estimators=10, verbose=-1).fit(X, y)
    >>> ours = from_lightgbm(theirs)
    >>> bool(abs(ours.predict(X) - theirs.predict(X)).max() < 1e-9)
    True
    """
    from sklboost.estimators.files.foreign_models import estimator_of_lightgbm

    return estimator_of_lightgbm(model, _class_named)


@np.errstate(all="ignore")
def from_xgboost(model: Any) -> Any:
    """Return a fitted estimator with the trees of a model of XGBoost's.

    It predicts as XGBoost's estimators do, to the rounding of their float32 sums, and
    everything that estimators here do works on it: SHAP values, derivations, the page, plots.

    Parameters
    ----------
    model : xgboost.Booster, estimator of xgboost, str, path-like, file object or bytes
        A file is one of XGBoost's, JSON or UBJSON, of version 1.7 or later; xgboost need not be
        installed.

    Returns
    -------
    XGBRegressorLite, XGBClassifierLite, XGBRFRegressorLite, XGBRFClassifierLite, XGBRankerLite or \
XGBSurvivalLite
        As the objective says. XGBoost keeps no baseline hazards: a model of "survival:cox" predicts
        risk scores, and one of "survival:aft" also times and their quantiles, but no functions of
        time.

    Raises
    ------
    ModelFileError
        If the model has what cannot be represented, such as ``booster="gblinear"``, or if the file
        is damaged.
    OSError
        If the file cannot be read.

    Notes
    -----
    After early stopping the rounds up to the best one are kept, with which XGBoost's estimators
    predict. Several quantiles are put in order, which XGBoost does not do. Parameters are taken
    from an estimator of XGBoost's; from a booster or a file, as far as the trees show them.

    Examples
    --------
    >>> import xgboost
    >>> from sklearn.datasets import load_diabetes
    >>> from sklboost import from_xgboost
    >>> X, y = load_diabetes(return_X_y=True)
    >>> theirs = xgboost.XGBRegressor(n_estimators=10).fit(X, y)
    >>> ours = from_xgboost(theirs)
    >>> bool(abs(ours.predict(X) / theirs.predict(X) - 1).max() < 1e-6)
    True
    """
    from sklboost.estimators.files.foreign_models import estimator_of_xgboost

    return estimator_of_xgboost(model, _class_named)
