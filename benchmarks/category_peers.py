"""How each library is told of categories; everything else about them is left at its defaults."""

import numpy as np

from .category_data import category_names

# HistGradientBoosting: a level is a bin, and a byte has room for 255 beside the missing values.
MOST_LEVELS = {"hist_gb": 255}


def takes(library, dataset):
    """Whether a library can be trained on a data set of frames with these categories."""
    X, most = dataset.X_train, MOST_LEVELS.get(library, np.inf)
    return all(len(X[name].cat.categories) <= most for name in category_names(X))


def prepare(library, dataset):
    """Return a data set of frames in the form that the library asks for."""
    if not library.startswith("catboost"):
        return dataset
    return dataset._replace(X_train=_as_text(dataset.X_train), X_test=_as_text(dataset.X_test))


def parameters(library, dataset):
    """Return the parameters that tell a library of the categories of a data set of frames."""
    if library.startswith("catboost"):
        return {"cat_features": category_names(dataset.X_train)}
    of_library = {
        "sklboost": {},  # both read it from the dtype
        "lightgbm": {},
        "xgboost": {"enable_categorical": True},
        "hist_gb": {"categorical_features": "from_dtype"},
    }
    return of_library[library]


def _as_text(X):
    """Return a frame whose categories are text; CatBoost takes no missing ones."""
    text = {
        name: X[name].astype("string").fillna("missing").astype("category")
        for name in category_names(X)
    }
    return X.assign(**text)
