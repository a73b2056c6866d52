"""Labels of any kind, as scikit-learn's own classifiers take them, and which is predicted."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import HistGradientBoostingClassifier

from sklboost import XGBClassifierLite
from tests.small_models import small

# --- the yardstick: what scikit-learn's own classifiers do ----------------------------------------

SEQUENCES = np.empty(2, dtype=object)
SEQUENCES[:] = [("red", "round"), ("blue",)]
PAIRS = {
    "text": np.array(["no", "yes"]),
    "objects": np.array(["ant", "zebra"], dtype=object),
    "booleans": np.array([False, True]),
    "integers": np.array([-3, 7]),
    "unsigned": np.array([3, 200], dtype=np.uint8),
    "whole floats": np.array([1.0, 2.0]),
    "beyond float64": np.array([2**53, 2**53 + 1], dtype=np.uint64),
    "beyond int64": np.array([2**63 + 1, 2**63 + 3], dtype=np.uint64),
    "least int64": np.array([-(2**63), -(2**63) + 1]),
    "farthest int64": np.array([-(2**63), 2**63 - 1]),
    "float16": np.array([0, 1], dtype=np.float16),
    "dates": np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]"),
    "empty text": np.array(["", "a"]),
    "fractions": np.array([0.5, 1.5]),
    "complex": np.array([1 + 0j, 2]),
    "boolean objects": np.array([True, False], dtype=object),
    "boolean and number": np.array([True, 2], dtype=object),
    "text and number": np.array(["a", 2], dtype=object),
    "number and text": np.array([2, "a"], dtype=object),
    "text and None": np.array([None, "a"], dtype=object),
    "beyond 64 bits": np.array([2**70, 1], dtype=object),
    "sequences": SEQUENCES,
}
_ARE_TEXT_OR_NUMBERS = (
    "{{}} y holds Python objects of type {}: labels are all text, or numbers of a dtype of their "
    "own, as y.astype(int) has"
).format
# What we say where scikit-learn tells of continuous values, after its words or instead of them.
OF_OBJECTS = {
    "boolean and number": _ARE_TEXT_OR_NUMBERS("bool, int"),
    "text and number": _ARE_TEXT_OR_NUMBERS("int, str")[3:],  # theirs is Python's, of "<"
    "number and text": _ARE_TEXT_OR_NUMBERS("int, str")[3:],
    "beyond 64 bits": _ARE_TEXT_OR_NUMBERS("int"),
    "sequences": _ARE_TEXT_OR_NUMBERS("tuple"),
    "text and None": (
        "y has no value in 21 row(s), the first is row 0: leave out rows without a target"
    ),
}
CONTAINERS = {
    "list": list,
    "column": lambda y: np.array(y)[:, np.newaxis],
    "pandas": pd.Series,
    "pandas string": lambda y: pd.Series(y, dtype="string"),
    "pandas category": lambda y: pd.Series(y, dtype="category"),
    "pandas unused category": lambda y: pd.Series(pd.Categorical(y, categories=["yes", "-", "no"])),
    "pandas column": lambda y: pd.DataFrame({"y": y}),
    "pandas Int64": lambda y: pd.Series(np.equal(y, "yes").astype(int), dtype="Int64"),
    "pandas boolean": lambda y: pd.Series(np.equal(y, "yes"), dtype="boolean"),
    "pandas missing Int64": lambda y: pd.Series([None] + [1, 2] * (len(y) // 2), dtype="Int64"),
    "polars": pl.Series,
    "polars category": lambda y: pl.Series(y, dtype=pl.Categorical),
    "pyarrow": pa.array,
}
THEIRS = HistGradientBoostingClassifier(max_iter=1, min_samples_leaf=5)
ROWS = np.arange(41.0)[:, np.newaxis]
SECOND = (np.arange(41) > 20).astype(int)


def outcome(model, y):
    """Return what a classifier made of labels, their dtype and its predictions, or why not."""
    try:
        model.fit(ROWS, y)
    except (TypeError, ValueError) as error:
        return type(error), str(error)
    prediction = model.predict(ROWS)
    return model.classes_.dtype, list(model.classes_), prediction.dtype, list(prediction)


@pytest.mark.parametrize("kind", PAIRS)
def test_the_same_labels_as_scikit_learn(kind):
    y = PAIRS[kind][SECOND]
    ours = outcome(small(XGBClassifierLite), y)
    theirs = outcome(THEIRS, y.astype(bool) if kind == "boolean objects" else y)
    if kind in OF_OBJECTS:
        assert ours == (ValueError, OF_OBJECTS[kind].format(theirs[1]))
        if kind in ("text and number", "number and text"):
            words = r"^y of X_val holds Python objects of type int, str: labels are all text"
            with pytest.raises(ValueError, match=words):
                small(XGBClassifierLite).fit(ROWS, SECOND, X_val=ROWS, y_val=y)
        return
    assert ours == theirs
    if y.dtype.kind in "UbiufM" and kind != "fractions":
        assert ours[3] == list(y)  # it did learn them


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
@pytest.mark.parametrize("kind", CONTAINERS)
def test_the_same_labels_as_scikit_learn_from_every_container(kind):
    y = CONTAINERS[kind](["no" if k == 0 else "yes" for k in SECOND])
    ours = outcome(small(XGBClassifierLite), y)
    if kind in ("pandas Int64", "pandas boolean"):  # of which scikit-learn makes floats
        y = y.to_numpy(y.dtype.numpy_dtype)
    theirs = outcome(THEIRS, y)
    if kind == "pandas missing Int64":  # in our words, and where
        words = "y has no value in 1 row(s), the first is row 0: leave out rows without a target"
        theirs = (theirs[0], words)
    assert ours == theirs


# --- which is predicted --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "base_score", "metric"),
    [
        (np.array([1, 0, 1, 1]), 0.5, "error"),
        (np.array([2, 0, 1, 1]), 0.0, "merror"),
        (np.array([[0, 1], [1, 0], [1, 1], [0, 0]]), 0.5, "error"),
    ],
)
def test_of_equal_scores_the_first_class_is_predicted(y, base_score, metric):
    X = np.arange(4.0)[:, np.newaxis]
    model = XGBClassifierLite(n_estimators=1, learning_rate=0, base_score=base_score)
    model.set_params(eval_metric=[metric, "accuracy"]).fit(X, y, X_val=X, y_val=y)
    assert_array_equal(model.predict(X), np.zeros_like(y))
    log = model.evals_result_["validation_0"]
    assert log[metric] == [np.mean(y != 0)]
    assert log["accuracy"] == [model.score(X, y)] == [0.25]


def test_many_classes():
    n_classes = 257  # one more than a byte has numbers
    y = np.repeat(np.arange(n_classes), 2)
    X = y[:, np.newaxis].astype(float)
    model = XGBClassifierLite(n_estimators=1, max_depth=1, min_child_weight=0).fit(X, y)
    is_last = model.predict_proba(X)[:, -1]
    assert (is_last[-2:] > is_last[:-2].max()).all()
