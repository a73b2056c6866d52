"""What fit says to validation data, and to settings that do not go with it."""

import inspect
import re

import numpy as np
import pytest
from sklearn.datasets import load_iris

from sklboost import (
    XGBClassifierLite,
    XGBRankerLite,
    XGBRegressorLite,
    XGBSurvivalLite,
    bin_features,
)
from sklboost.estimators.input.rows import FitArguments

pytestmark = pytest.mark.interpreted

NAN, INF = float("nan"), float("inf")
X, Y = np.arange(60.0).reshape(20, 3), np.arange(20) % 2
PAIR = (X, Y)


def fails(words, estimator=XGBClassifierLite, error=ValueError, settings=None, **arguments):
    """Check that a fit fails with these words, and leaves nothing."""
    model = estimator(n_estimators=2, **(settings or {}))
    with pytest.raises(error, match=words):
        model.fit(X, Y, **arguments)
    assert not [name for name in vars(model) if name.endswith("_")]


# --- the two forms -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (dict(X_val=X), "^X_val is given without y_val$"),
        (dict(y_val=Y), "^y_val is given without X_val$"),
        (dict(sample_weight_val=Y), "^sample_weight_val is given without X_val$"),
        (dict(base_margin_val=Y), "^base_margin_val is given without X_val$"),
        (dict(X_val=X, y_val=Y, eval_set=[PAIR]), "^both X_val and eval_set are given: pass"),
        (dict(eval_set=[PAIR], y_val=Y), r"^y_val goes with X_val; for eval_set there is the pair"),
        (dict(eval_set=[PAIR], sample_weight_val=Y), "for eval_set there is sample_weight_eval_s"),
        (dict(eval_set=[PAIR], base_margin_val=Y), "for eval_set there is base_margin_eval_set$"),
        (dict(sample_weight_eval_set=[Y]), "^sample_weight_eval_set is given without eval_set$"),
        (dict(base_margin_eval_set=[Y]), "^base_margin_eval_set is given without eval_set$"),
        (dict(eval_set=[PAIR], sample_weight_eval_set=[None, Y]), "for each of the 1 pairs of"),
        (dict(eval_set=[PAIR], sample_weight_eval_set=Y), "^sample_weight_eval_set must be a list"),
        (dict(eval_set=[PAIR], base_margin_eval_set=[]), "^base_margin_eval_set must be a list"),
    ],
    ids=str,
)
def test_arguments_that_do_not_go_together(arguments, words):
    fails(words, **arguments)


@pytest.mark.parametrize(
    ("eval_set", "words"),
    [
        (
            X,
            r"^eval_set is of type ndarray: .* a list of pairs, eval_set=\[\(X_val, y_val\)\]$",
        ),
        (dict(X=X), r"^eval_set is of type dict: it must be a list of pairs"),
        (PAIR, r"^eval_set\[0\] must be a pair \(X, y\), not of type ndarray"),
        ([PAIR, X], r"^eval_set\[1\] must be a pair \(X, y\), not of type ndarray"),
        ([(X, Y, Y)], r"^eval_set\[0\] must be a pair \(X, y\), not of type tuple"),
    ],
    ids=["array", "dict", "pair", "second", "triple"],
)
def test_no_list_of_pairs(eval_set, words):
    fails(words, error=TypeError, eval_set=eval_set)


def test_an_empty_list_is_no_validation_data():
    model = XGBRegressorLite(n_estimators=2).fit(X, Y, eval_set=[])
    assert model.evals_result_ == {}


# --- the rows ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (dict(X_val=X[:, :2], y_val=Y), "^X_val: X has 2 features, but .* is expecting 3 features"),
        (dict(X_val=X[:0], y_val=Y[:0]), r"^X_val: Found array with 0 sample\(s\)"),
        (dict(X_val=X[0], y_val=Y), "^X_val: Expected 2D array, got 1D array"),
        (
            dict(X_val=[["a"] * 3] * 20, y_val=Y),
            "^X_val: column 0 held numbers at fit and holds text",
        ),
        (
            dict(X_val=X, y_val=Y[1:]),
            "^X_val has 20 rows, but its y has 19: pass one for each$",
        ),
        (dict(X_val=X, y_val=np.where(Y, NAN, 1.0)), "Input y of X_val contains NaN"),
        (dict(eval_set=[PAIR, (X[:, 1:], Y)]), r"^eval_set\[1\]: X has 2 features"),
        (dict(eval_set=[(X, np.where(Y, INF, 1.0))]), r"y of eval_set\[0\] contains infinity"),
        (dict(X_val=X, y_val=Y, sample_weight_val=Y[1:]), r"inconsistent .*: \[19, 20\]"),
        (dict(X_val=X, y_val=Y, sample_weight_val=-Y), r"^sample_weight of X_val\[1\]=-1: weights"),
        (dict(X_val=X, y_val=Y, sample_weight_val=0 * Y), "^sample_weight of X_val is zero for ev"),
        (dict(X_val=X, y_val=Y, sample_weight_val=np.ones((20, 1))), r"has shape \(20, 1\): it mu"),
        (dict(X_val=X, y_val=Y, sample_weight_val=[NAN] * 20), "sample_weight of X_val contains N"),
        (
            dict(eval_set=[PAIR], sample_weight_eval_set=[-Y]),
            r"^sample_weight of eval_set\[0\]\[1\]",
        ),
        (
            dict(groups=Y[1:]),
            r"^groups has shape \(19,\): it must be 1-D, one for each of the 20 rows",
        ),
        (dict(groups=np.ones((20, 2))), r"^groups has shape \(20, 2\): it must be 1-D, one for"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_rows_that_cannot_be_scored(arguments, words):
    fails(words, **arguments)
    fails(words, XGBRegressorLite, **arguments)


@pytest.mark.parametrize(
    ("labels", "unknown"),
    [(np.arange(20) % 3, "[2]"), (np.array(["no", "yes"])[Y], "['no', 'yes']")],
)
def test_labels_that_the_training_had_not(labels, unknown):
    words = f" has the labels {unknown}, which y does not have: the classes are [0, 1]"
    fails(f"^y of X_val{re.escape(words)}", X_val=X, y_val=labels)
    fails(rf"^y of eval_set\[0\]{re.escape(words)}", eval_set=[(X, labels)])


def test_targets_of_validation_data_out_of_range():
    fails("^y of X_val contains 1e[+]31", XGBRegressorLite, X_val=X, y_val=Y * 1e31)


def test_bins_as_validation_data_of_raw_values():
    fails("^X_val: .* has other cut points", X_val=bin_features(X), y_val=Y)
    binned = bin_features(X)
    words = "^refit=True joins the rows of X and of the validation data: pass both as raw"
    model = XGBRegressorLite(n_estimators=2, early_stopping_rounds=1, refit=True)
    with pytest.raises(ValueError, match=words):
        model.fit(binned, Y, X_val=X, y_val=Y)


# --- rows held out -------------------------------------------------------------------------------


def test_a_class_in_the_last_rows_only():
    own, y = load_iris(return_X_y=True)  # sorted by class
    model = XGBClassifierLite(early_stopping_rounds=3, validation_split="time")
    model.set_params(validation_fraction=0.4)
    with pytest.raises(ValueError, match=r"^no row of class 2 is left .* X_val and y_val"):
        model.fit(own, y)


def test_a_misspelt_metric_is_an_error_without_validation_data_too():
    X, y = np.arange(8.0)[:, np.newaxis], [0, 1] * 4
    with pytest.raises(ValueError, match="acuracy"):
        XGBClassifierLite(eval_metric=["logloss", "acuracy"]).fit(X, y)
    XGBClassifierLite(n_estimators=1, eval_metric=["logloss", lambda y, p: 1 / 0]).fit(X, y)


@pytest.mark.parametrize(
    ("estimator", "own"),
    [
        (XGBRegressorLite, set()),
        (XGBSurvivalLite, {"entry_time", "strata"}),
        (XGBRankerLite, {"qid", "group", "qid_val", "group_val", "eval_qid", "eval_group"}),
    ],
)
def test_every_argument_of_fit_is_handed_on(estimator, own):
    """They are handed on by name: one that `FitArguments` does not have would have no effect."""
    arguments = set(inspect.signature(estimator.fit).parameters) - {"self", "X", "y"}
    assert arguments - set(FitArguments._fields) == own
