"""Every check of a model file has a file that only this check refuses, by the name of the place."""

import copy
import functools
import io
import json
import pickle
import time
import tracemalloc

import numpy as np
import pytest

from sklboost import ModelFileError, XGBRegressorLite, load_model
from sklboost.estimators.files import model_files
from sklboost.files.documents import write_json, write_ubjson
from tests.files.golden_models import ALL, X


@functools.cache
def _text(name):
    file = io.BytesIO()
    ALL[name]().save_model(file, format="sklboost", raw_format="json")
    return file.getvalue()


def document(name):
    """Return the section of a model, of which a test changes something."""
    return json.loads(_text(name))["sklboost"]


def load(section):
    """Load a section from JSON and from UBJSON, which must say the same of it."""
    results = []
    for write in (write_json, write_ubjson):
        try:
            results.append(load_model(write({"sklboost": section})))
        except ModelFileError as error:
            results.append(error)
        section = copy.deepcopy(section)
    assert type(results[0]) is type(results[1]), results
    if isinstance(results[0], ModelFileError):
        raise results[0]
    return results[0]


def put(section, path, value):
    """Set what is at a path; a function is given what is there."""
    *above, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    for step in above:
        section = section[step]
    section[last] = value(section[last]) if callable(value) else value


def _first(value):
    return lambda values: [value, *values[1:]]


def _last(value):
    return lambda values: [*values[:-1], value]


def _own(link, names=()):
    return {"link": link, "numbers": [0.0], "output_names": [*names]}


T = "model/trees/"
S = T + "settings/"
_OF_TREES = [
    # counts and links
    ("regression", T + "n_nodes", [], "n_nodes: there is no tree"),
    ("regression", T + "n_nodes", [0, 14], r"n_nodes\[0\]: must be an integer from 1"),
    ("regression", T + "n_nodes", [2**31 - 2] * 2, "left: must have 4294967292 elements"),
    ("regression", T + "n_nodes", [7], "left: must have 7 elements"),
    ("regression", T + "n_nodes", [14], "left: node 7 of all comes behind its child"),
    ("regression", T + "left", _first(0), "left: node 0 of all comes behind its child"),
    ("regression", T + "left", _first(2), "left: the nodes of a tree must each be the child"),
    ("regression", T + "left", _first(2**31 - 2), "left: the nodes of a tree must each be the"),
    ("regression", T + "left", _first(2**31), r"left\[0\]: must be an integer from -1"),
    ("regression", T + "left", _first(-1), "left: the nodes of a tree must each be the child"),
    ("regression", T + "left", lambda left: [1, 1, *left[2:]], "left: node 1 of all comes behind"),
    # splits
    ("regression", T + "feature", _first(3), r"feature\[0\]: must be an integer from 0 to 2"),
    ("regression", T + "feature", _first(-1), r"feature\[0\]: must be an integer from 0 to 2"),
    ("regression", T + "feature", _first(True), "feature: must be a list of integers"),
    ("regression", T + "default_left", _first(2), r"default_left\[0\]: must be an integer from 0"),
    ("regression", T + "threshold", _first("NaN"), "threshold: must be a number where"),
    ("regression", T + "threshold", lambda values: values[1:], "threshold: must have 6 elements"),
    ("regression", T + "gain", _first("Infinity"), r"gain\[0\]: must be a finite number"),
    # nodes
    ("regression", T + "value", _first("NaN"), r"value\[0\]: must be a finite number"),
    ("regression", T + "value", _last(1e299), r"value\[13\]: must be a number from -1e\+298"),
    ("regression", T + "cover", [-1.0] * 14, "cover: a sum is negative, or not finite"),
    ("regression", T + "cover", ["NaN"] * 14, "cover: a sum is negative, or not finite"),
    ("regression", T + "cover", {"integers": [1] * 14, "exponents": [1100] * 2}, "cover: a sum is"),
    ("regression", T + "cover/exponents", [1201] * 2, r"exponents\[0\]: must be an integer"),
    ("regression", T + "cover/exponents", [0], "exponents: must have 2 elements"),
    ("regression", T + "cover/integers", [2**33] * 14, r"integers\[0\]: must be an integer"),
    ("regression", T + "gradient", ["Infinity"] * 14, "gradient: a sum is infinite"),
    ("regression", T + "n_pruned", [0], "n_pruned: must have 2 elements"),
    ("regression", T + "n_pruned", [-1, 0], r"n_pruned\[0\]: must be an integer"),
    # settings
    ("regression", S + "n_trees", [1], "n_trees: must add up to 2 trees"),
    ("regression", S + "n_trees", [3], r"n_trees\[0\]: must be an integer from 1 to 2"),
    ("regression", S + "num_parallel_tree", [0], r"num_parallel_tree\[0\]: must be an integer"),
    ("regression", S + "num_parallel_tree", [3], "no whole number of rounds of 3"),
    ("three classes", S + "num_parallel_tree", [4], "no whole number of rounds of 12"),
    ("regression", S + "learning_rate", [-0.1], r"learning_rate\[0\]: must be a number from 0"),
    ("regression", S + "reg_lambda", ["NaN"], r"reg_lambda\[0\]: must be a number from 0"),
    ("regression", S + "reg_alpha", ["Infinity"], r"reg_alpha\[0\]: must be a number from 0"),
    ("regression", S + "max_delta_step", [-1], r"max_delta_step\[0\]: must be a number from 0"),
    ("regression", S + "grow_gain", ["NaN"], r"grow_gain\[0\]: must be a number"),
    ("regression", S + "subsample", [0.0], r"subsample\[0\]: must be a number"),
    ("regression", S + "colsample_bynode", [1.5], r"colsample_bynode\[0\]: must be a number"),
    ("regression", S + "max_depth", [-1], r"max_depth\[0\]: must be an integer from 0"),
    ("regression", S + "linear_tree", [2], r"linear_tree\[0\]: must be an integer from 0 to 1"),
    # vector trees
    ("vector trees", S + "multi_output", [0], "no whole number of rounds of 3"),
    ("vector trees", T + "outputs/n_outputs", 2, "n_outputs: must be an integer from 3 to 3"),
    ("vector trees", T + "outputs/value", _first(0.5), "value: the values of the first output"),
    ("vector trees", T + "outputs/value", [0.0], "value: must have 42 elements"),
    ("vector trees", T + "outputs/hessian", [-1.0] * 42, "hessian: a sum is negative"),
    ("vector trees", T + "outputs/gradient", ["-Infinity"] * 42, "gradient: a sum is infinite"),
    # categories
    ("categories of text", T + "categories/n_codes", _first(2**31), r"n_codes\[0\]: must be an"),
    ("categories of text", T + "categories/codes", [], "codes: must have"),
    ("categories of text", T + "categories/codes", _first(5), "codes: a category is not one of"),
    ("categories of text", T + "categories/codes", _first(-1), r"codes\[0\]: must be an integer"),
    (
        "categories of text",
        T + "threshold",
        lambda v: [0.5] * len(v),
        "threshold: must be a number",
    ),
    # linear leaves
    ("linear leaves", T + "linear/n_terms", _last(2**31), r"n_terms\[13\]: must be an integer"),
    ("linear leaves", T + "linear/n_terms", [3] * 14, "feature: must have 42 elements"),
    ("linear leaves", T + "linear/feature", _first(3), r"feature\[0\]: must be an integer from 0"),
    ("linear leaves", T + "linear/slope", _first("NaN"), r"slope\[0\]: must be a finite number"),
    ("linear leaves", T + "linear/centre", _first("NaN"), r"centre\[0\]: must be a finite number"),
    ("linear leaves", T + "linear/shift", _first("NaN"), r"shift\[0\]: must be a finite number"),
    ("linear leaves", T + "linear/least", _last(1e9), "least: must not be above 'most'"),
    ("linear leaves", T + "linear/least", _last("Infinity"), r"least\[13\]: must be a number"),
    ("linear leaves", T + "linear/most", _last("-Infinity"), r"most\[13\]: must be a number"),
    ("linear leaves", T + "linear/most", _last("NaN"), r"most\[13\]: must be a number"),
    # trees before pruning
    ("pruned, kept", T + "unpruned/settings/learning_rate", [0.5], "unpruned: must have the sett"),
    ("pruned, kept", T + "unpruned/threshold", _first(0.123), "unpruned: must have all splits"),
    ("pruned, kept", T + "unpruned/feature", lambda v: [2] * len(v), "unpruned: must have all"),
]
M = "model/"
F = "features/"
E0 = "features/encodings/0/"
G = "targets/"
_OF_THE_REST = [
    (
        "regression",
        "format_version",
        2,
        "format version 2, and .* up to 1: install a newer sklboost",
    ),
    ("regression", "format_version", 0, "format_version: must be an integer from 1"),
    ("regression", "estimator", "Pipeline", "estimator: must be one of"),
    # parameters
    ("regression", "parameters/alpha", 1, "has no parameters \\['alpha'\\]"),
    ("regression", "parameters/max_depth", -1, "parameters: max_depth=-1: it must be"),
    ("regression", "parameters/learning_rate", {"int": "9" * 4000}, "parameters: learning_rate=99"),
    ("regression", "parameters/missing", {"int": "9" * 4000}, "parameters: missing=999"),
    ("regression", "parameters/base_score", ["a" * 10**6, ""], "parameters: base_score="),
    ("regression", "parameters/callbacks", ["a"], "parameters: callbacks="),
    ("regression", "parameters/monotone_constraints", "(" * 10**5, "parameters: monotone_const"),
    ("regression", "parameters/monotone_constraints", "{[]:1}", "parameters: monotone_const"),
    # features
    ("regression", F + "n_features", 0, "n_features: must be an integer from 1"),
    ("regression", F + "n_features", 2**31, "n_features: must be an integer from 1 to 1048576"),
    ("names of text", F + "n_features", 4, "names: must have 4 elements"),
    ("names of text", F + "names", [[], 1, 2], "names: unhashable"),
    ("regression", F + "missing", "none", "missing: must be a number"),
    ("regression", F + "binning_digest", 1, "binning_digest: must be text"),
    # how values become numbers
    ("categories of text", E0 + "kind", "text", "kind: must be one of"),
    ("categories of text", E0 + "kind", "time", "unit: '' is no unit of a time"),
    ("categories of text", E0 + "kind", "number", "codes: must have 0 elements"),
    ("categories of text", E0 + "codes", [0, 1, 2, 3, 5], "codes: a code has no category"),
    ("categories of text", E0 + "codes", [0, 1, 2, 3, 65534], r"codes\[4\]: must be an integer"),
    ("categories of text", E0 + "codes", [0, 1], "codes: must have 5 elements"),
    ("categories of text", E0 + "categories/array/values", ["a"] * 5, "a category occurs twice"),
    ("categories of text", E0 + "categories/array/values", [[]] * 5, "categories: unhashable"),
    ("categories of text", E0 + "categories", [1], "categories: must be an array of one dim"),
    ("categories of text", E0 + "is_declared", 0, "is_declared: must be true or false"),
    ("column of datetime", E0 + "unit", "datetime64[ns, UTC]", "is no unit of a time"),
    ("categories of text", E0 + "unit", "NaN", "'NaN' is no unit of a category"),
    (
        "column of ranks of int64",
        E0 + "ranks/array/values",
        lambda v: v[::-1],
        "ranks: must be inc",
    ),
    ("column of ranks of int64", E0 + "ranks/array/dtype", "<f8", "ranks: must be increasing"),
    # targets and losses
    (
        "regression",
        "targets",
        {"kind": "labels", "n_labels": 1, "dtype": "<i8"},
        "there is no objective",
    ),
    ("two classes", "targets", {"kind": "numbers", "n_targets": 1}, "objective 'binary:logistic'"),
    ("several targets", G + "n_targets", 4, "n_targets: must be an integer from 1 to 3"),
    ("several targets", G + "n_targets", 1, "'reg:squarederror' has 1 raw scores per row"),
    ("labels", G + "dtype", "<U3", "dtype: labels are numbers"),
    ("labels", G + "dtype", "<f1", "dtype: "),
    ("two classes", G + "classes/array/values", [1, 1], "classes: must be sorted, each class once"),
    ("labels of text objects", G + "classes/array/values", ["a", 1], "classes: must be sorted"),
    ("labels of text objects", G + "classes/array/values", [[1], [2]], "classes: unhashable"),
    ("two classes", G + "classes", [0, 1], "classes: must be an array of one dimension"),
    ("two classes", G + "multipliers", [1.0, 0.0], r"multipliers\[1\]: must be a number"),
    ("two classes", G + "multipliers", [1.0], "multipliers: must have 2 elements"),
    ("two classes", "loss/objective", "multi:softprob", "there is no objective 'multi:softprob'"),
    ("regression", "loss/objective", "os.system", "there is no objective 'os.system'"),
    ("regression", "loss/parameters", {"huber_slope": [1.0]}, "there is no objective"),
    ("quantiles", "loss/parameters", {}, "there is no objective 'reg:quantileerror'"),
    ("regression", "loss/own", _own("odds"), "own.link: must be one of 'identity', 'log'"),
    ("two classes", "loss/own", _own("log"), "own.link: must be one of 'logit', 'other'"),
    ("several targets", "loss/own", _own("log", ["a"]), "output_names: must have 3 elements"),
    ("survival, cox", "loss/own", _own("log"), "own: for these targets there are no losses of the"),
    ("distribution, normal", "loss/own", _own("log"), "own: for these targets there are no losses"),
    ("quantiles", "loss/parameters/quantile_alpha", [0.2, 0.5, 1.5], "quantile_alpha=1.5: it must"),
    ("quantiles", "loss/parameters/quantile_alpha", [0.2] * 10**5, "100000 values for each of 2"),
    (
        "survival, aft",
        "loss/parameters/aft_loss_distribution",
        [],
        "distribution: must have a number",
    ),
    (
        "survival, aft",
        "loss/parameters/aft_loss_distribution_scale",
        [],
        "scale: must have a number",
    ),
    # scores
    ("regression", M + "base_score", [], "base_score: must have a number for each output"),
    ("regression", M + "base_score", [0.0] * 2, "'reg:squarederror' has 1 raw scores per row"),
    ("regression", M + "base_score", ["NaN"], r"base_score\[0\]: must be a finite number"),
    ("regression", M + "shift", [1e300], r"shift\[0\]: must be a number from -1e\+298"),
    ("regression", M + "has_margin", None, "has_margin: must be true or false"),
    # training
    ("regression", "training/first_round", -1, "first_round: must be an integer from 0"),
    ("regression", "training/split_seed", 0.5, "split_seed: must be an integer from 0"),
    ("regression", "training/best_iteration", -1, "best_iteration: must be an integer from 0"),
    ("regression", "training/best_score", "a", "best_score: must be a value of type float"),
    ("regression", "training/stop_reason", 1, "stop_reason: must be a value of type str"),
    ("regression", "training/report/n_trees", -1, "n_trees: must be an integer from 0"),
    ("regression", "training/report/seconds", {"total": "NaN"}, "total: must be a finite number"),
    (
        "regression",
        "training/report/constant_features",
        [1],
        r"constant_features\[0\]: must be text",
    ),
    ("validation log", "training/metrics", {"a": [1]}, "metrics.a: must be an object"),
    (
        "validation log",
        "training/metrics",
        {"a": {"b": ["x"]}},
        "metrics.a.b: must be a list of num",
    ),
    ("refit to be continued", "training/before_refit/base_score", [], "base_score: must have 1"),
]


@functools.cache
def _check_undamaged(name):
    load(document(name))


@pytest.mark.parametrize(("name", "path", "value", "problem"), _OF_TREES + _OF_THE_REST)
def test_damage_is_refused(name, path, value, problem):
    section = document(name)
    _check_undamaged(name)
    try:
        put(section, path, value)
    except KeyError:
        put(section, path, lambda _: value)
    with pytest.raises(ModelFileError, match=rf"^the model file\.sklboost.*{problem}"):
        load(section)


def test_keys_that_are_not_there():
    """Parameters have defaults, and settings of trees too; all else is needed."""
    section = document("regression")
    del section["parameters"]["max_depth"]
    section["model"]["trees"]["settings"].pop("max_bin", None)
    load(section)
    for part, key in (("features", "names"), ("model", "trees"), ("model", "base_score")):
        section = document("regression")
        del section[part][key]
        with pytest.raises(ModelFileError, match=f"has no key '{key}'"):
            load(section)


# --- what is allowed


def test_none_and_text_of_constraints_are_kept():
    for parameters in ({"max_depth": None}, {"monotone_constraints": "(1,0,-1)"}):
        model = XGBRegressorLite(n_estimators=1, **parameters).fit(X, X[:, 0])
        file = io.BytesIO()
        model.save_model(file, format="sklboost", raw_format="json")
        loaded = load_model(file.getvalue())
        assert loaded.get_params() | {"missing": 0} == model.get_params() | {"missing": 0}


def test_empty_sets_of_categories_send_all_right():
    """As where missing values are split from all others; the only set of the model is empty."""
    section = document("categories of text")
    trees = section["model"]["trees"]
    trees["categories"] = {"n_codes": [0] * len(trees["threshold"]), "codes": []}
    model = load(section)
    file = io.BytesIO()
    model.save_model(file, format="sklboost", raw_format="json")
    from tests.files.golden_models import rows_of

    rows = rows_of("categories of text")
    for found in (model, load_model(file.getvalue()), pickle.loads(pickle.dumps(model))):
        by_category = np.isnan(found.model_.nodes.threshold) & (found.model_.nodes.left >= 0)
        assert by_category.any()
        margin = found.predict(rows, output_margin=True)
        constant = margin - found.shap_values(rows).sum(axis=1)
        np.testing.assert_allclose(constant, constant[0], atol=1e-12)
        assert (found.predict(rows) == model.predict(rows)).all()
        assert found.trees_to_dataframe()["Category"].dropna().map(len).max() == 0
        # by single rows and by many the same way
        assert [found.predict(rows[i : i + 1])[0] for i in range(9)] == found.predict(rows)[
            :9
        ].tolist()


def test_more_features_than_a_file_says(monkeypatch):
    monkeypatch.setattr(model_files, "_MOST_FEATURES", 2)
    with pytest.raises(ValueError, match=r"the model has 3 features.*pickle"):
        ALL["regression"]().save_model(io.BytesIO(), format="sklboost", raw_format="json")


# --- after loading


def test_settings_by_which_nothing_can_be_divided():
    section = document("vector trees")
    put(section, S + "learning_rate", [0.0])
    put(section, S + "reg_lambda", [0.0])
    put(section, T + "outputs/hessian", [0.0] * 42)
    load(section).trees_to_dataframe()


# --- memory and time


def _stumps(n_trees):
    section = document("regression")
    trees = section["model"]["trees"]
    trees |= {name: [] for name in ("feature", "threshold", "default_left", "gain")}
    trees |= {name: [0] * n_trees for name in ("value", "gradient", "cover", "n_pruned")}
    trees |= {"n_nodes": [1] * n_trees, "left": [-1] * n_trees}
    trees["settings"]["n_trees"] = [n_trees]
    return section


def _changed(name, changes):
    section = document(name)
    for path, value in changes.items():
        put(section, path, value)
    return section


@pytest.mark.parametrize(
    ("make", "factor"),
    [
        # a tree has 1,200 bytes in memory, of which kernels read most, however small it is
        (lambda: _stumps(2000), 120),
        (lambda: _changed("regression", {F + "n_features": 2**20}), 50),
        (lambda: _changed("regression", {T + "n_nodes": [2**31 - 2] * 100}), 50),
        (lambda: _changed("vector trees", {M + "base_score": [0] * 10**5}), 50),
        (lambda: _changed("linear leaves", {T + "linear/n_terms": [3] * 14}), 50),
        (lambda: _changed("labels", {G + "n_labels": 2**60}), 50),
        (lambda: _changed("two classes", {G + "classes/array/dtype": "<U99999"}), 50),
    ],
)
def test_memory_and_time_are_a_small_multiple_of_the_file(make, factor):
    data = write_json({"sklboost": make()})
    tracemalloc.start()
    start = time.perf_counter()
    try:
        load_model(data)
    except ModelFileError:
        pass
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < factor * len(data) + 2**20
    assert time.perf_counter() - start < 20.0


def test_a_classifier_is_no_regressor():
    data = _text("two classes").replace(b"XGBClassifierLite", b"XGBRegressorLite")
    with pytest.raises(ModelFileError, match=r"parameters|targets"):
        load_model(data)
    section = document("regression")
    section["estimator"] = "XGBClassifierLite"
    with pytest.raises(ModelFileError, match="targets: are none of XGBClassifierLite"):
        load(section)
