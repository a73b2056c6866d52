"""Models from files: the functions that choose the class of estimator."""

from collections.abc import Mapping
from typing import Any

from sklboost.estimators.classifier import XGBClassifierLite
from sklboost.estimators.forests import XGBRFClassifierLite, XGBRFRegressorLite
from sklboost.estimators.regressor import XGBRegressorLite

# By whether targets are classes.
KINDS: Mapping[bool, type] = {False: XGBRegressorLite, True: XGBClassifierLite}
# By the names that are in files.
_BY_NAME = {
    kind.__name__: kind
    for kind in (XGBRegressorLite, XGBClassifierLite, XGBRFRegressorLite, XGBRFClassifierLite)
}


def load_model(fname: Any) -> Any:
    """Read the fitted estimator in a model file.

    Parameters
    ----------
    fname : str, path-like, file object or bytes
        What the method `save_model` has written.

    Returns
    -------
    XGBRegressorLite, XGBClassifierLite, XGBRFRegressorLite or XGBRFClassifierLite
        With all parameters, and the same bits in all results.

    Raises
    ------
    ModelFileError
        If it is no model file, or is damaged: the message says where.
    OSError
        If the file cannot be read.

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

    return load(fname, _BY_NAME)
