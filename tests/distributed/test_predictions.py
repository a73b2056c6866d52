"""Methods of fitted estimators on Dask collections: lazy, in the same parts, the same bits."""

import functools
import inspect

import dask
import dask.array as da
import dask.bag
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sklboost import (
    UnknownCategoryWarning,
    XGBClassifierLite,
    XGBDistributionLite,
    XGBRankerLite,
    XGBRegressorLite,
    XGBSurvivalLite,
    bin_features,
    survival_targets,
)
from sklboost.estimators.predict.dask_collections import PartMethod

N_ROWS = 90
CHUNKS = (40, 0, 30, 20)

random = np.random.default_rng(0)
X = random.normal(size=(N_ROWS, 3))
X[::7, 1] = np.nan
ARRAY = da.from_array(X, chunks=(CHUNKS, -1))
ROWS = dd.from_pandas(pd.DataFrame(X), npartitions=3)
SIGNAL = X[:, 0] + 0.3 * random.normal(size=N_ROWS)
FRAME = pd.DataFrame(
    {
        "size": X[:, 0],
        "weight": X[:, 1],
        "color": pd.Categorical(random.choice(["red", "green", "blue"], N_ROWS)),
        "city": random.choice(["Rome", "Oslo"], N_ROWS),
        "day": pd.Timestamp("2020-01-31") + pd.to_timedelta(random.integers(0, 50, N_ROWS), "D"),
        "count": random.integers(0, 9, N_ROWS),
    },
    index=np.arange(N_ROWS) * 10,
)
MARGIN = random.normal(size=N_ROWS)
STRATA = random.choice(["a", "b"], N_ROWS)
CLASSES = np.array(["low", "middle", "high"])[np.digitize(SIGNAL, [-0.5, 0.5])]
RELEVANCE = np.digitize(SIGNAL, [0.0, 1.0])
SEVERAL = np.column_stack([SIGNAL, SIGNAL**2])
TIMES = survival_targets(SIGNAL < 1.0, np.exp(SIGNAL))

FEW = dict(n_estimators=3, max_depth=3)
LABELS = np.column_stack([SIGNAL > 0, SIGNAL > 1]).astype(int)


@pytest.fixture(autouse=True)
def _in_turn():
    """Dask works on a part after the other, in this thread, unless a test has a client."""
    with dask.config.set(scheduler="synchronous"):
        yield


# --- every method

SHARED = ["predict", "apply", "shap_values", "shap_interaction_values"]
OF_CLASSES = ["predict_proba", "decision_function"]
OF_TIMES = ["predict_survival_function", "predict_cumulative_hazard_function"]
WAYS = {
    "regressor": (XGBRegressorLite(**FEW), SIGNAL, SHARED),
    "targets": (XGBRegressorLite(**FEW), SEVERAL, SHARED),
    "classes": (XGBClassifierLite(**FEW), CLASSES, [*SHARED, *OF_CLASSES]),
    "two classes": (XGBClassifierLite(**FEW), SIGNAL > 0, ["predict", *OF_CLASSES]),
    "labels": (XGBClassifierLite(**FEW), LABELS, ["predict", *OF_CLASSES]),
    "distribution": (XGBDistributionLite(**FEW), SIGNAL, [*SHARED, "predict_interval"]),
    "ranker": (XGBRankerLite(**FEW), RELEVANCE, SHARED),
    "survival": (XGBSurvivalLite(**FEW), TIMES, [*SHARED, *OF_TIMES]),
    "failure times": (XGBSurvivalLite(**FEW, objective="survival:aft"), TIMES, ["predict_time"]),
}
CALLS = [(way, method, {}) for way, (_, _, methods) in WAYS.items() for method in methods]
CALLS += [
    ("regressor", "predict", named)
    for named in (dict(output_margin=True), dict(pred_contribs=True), dict(iteration_range=(1, 2)))
]
CALLS += [
    ("classes", "predict", dict(output_margin=True)),
    ("classes", "predict", dict(pred_interactions=True)),
    ("classes", "predict_proba", dict(iteration_range=(0, 2), validate_features=False)),
    ("regressor", "shap_values", dict(X_background=X[:5])),
    ("distribution", "predict_quantile", dict(q=0.5)),
    ("distribution", "predict_quantile", dict(q=[0.1, 0.9])),
    *(("survival", method, dict(return_array=True)) for method in OF_TIMES),
]
# Of arrays by rows, what else takes rows.
REFUSED = {
    "predict_dist": "a frozen distribution is one object for all rows",
    "staged_predict": "iteration_range",
    "staged_predict_proba": "iteration_range",
    "staged_decision_function": "iteration_range",
    "shap_explanation": "an object of the shap package",
    "to_html": "a page",
    "explain_split": "a derivation",
}


@functools.cache
def model(way):
    """Return a model of numbers, fitted once."""
    estimator, y, _ = WAYS[way]
    queries = dict(qid=np.arange(N_ROWS) // 10) if way == "ranker" else {}
    return clone(estimator).fit(X, y, **queries)


@functools.cache
def model_of_frames(y="CLASSES"):
    settings = dict(FEW, categorical_features=["color", "city"], n_jobs=1)
    return XGBClassifierLite(**settings).fit(FRAME, globals()[y])


def parts(frame=FRAME):
    """Return a Dask DataFrame of uneven partitions, one of them empty, of unknown divisions."""
    blocks = np.split(np.arange(N_ROWS), np.cumsum(CHUNKS)[:-1])
    return dd.from_map(lambda block: frame.iloc[block], blocks, meta=frame.iloc[:0])


def same(lazy, local):
    """Whether what Dask computes is what was computed here, bit for bit, as was announced."""
    found = lazy.compute()
    announced = lazy._meta
    assert type(found) is type(announced)
    if isinstance(found, np.ndarray):
        assert found.dtype == announced.dtype == lazy.dtype == local.dtype
        assert lazy.shape[1:] == local.shape[1:]
    else:
        assert isinstance(found, pd.Series if local.ndim == 1 else pd.DataFrame)
        if local.ndim == 1:
            assert found.dtype == announced.dtype
        else:
            assert found.columns.tolist() == list(range(local.shape[1]))
            assert found.dtypes.equals(announced.dtypes)
            assert (found.dtypes == local.dtype).all()
        found = found.to_numpy()
    return found.shape == local.shape and found.tolist() == local.tolist()


@pytest.mark.parametrize(("way", "method", "named"), CALLS)
def test_method_of_array_and_of_frame(way, method, named):
    call = getattr(model(way), method)
    local = call(X, **named)
    lazy = call(da.from_array(X, chunks=(CHUNKS, -1)), **named)
    assert isinstance(lazy, da.Array)
    assert lazy.chunks == (CHUNKS, *((size,) for size in local.shape[1:]))
    assert same(lazy, local)
    frame = dd.from_pandas(pd.DataFrame(X, index=FRAME.index), npartitions=3)
    lazy = call(frame, **named)
    assert same(lazy, local)
    if local.ndim <= 2:
        assert lazy.divisions == frame.divisions
        assert lazy.compute().index.equals(FRAME.index)
    else:
        assert lazy.numblocks[0] == 3


def test_a_frame_that_is_read_as_one_partition_becomes_an_array():
    frame = dd.from_map(pd.DataFrame, [X], meta=pd.DataFrame(X[:0]))
    fitted = model("classes")
    assert same(fitted.shap_values(frame), fitted.shap_values(X))
    assert same(fitted.predict_proba(frame).values, fitted.predict_proba(X))


def test_all_methods_of_rows_are_here():
    tested = {name for _, _, methods in WAYS.values() for name in methods} | {"predict_quantile"}
    assert "score" not in tested
    not_fitted = {"fit", "score", "cost_complexity_pruning_path", "validation_importances"}
    for estimator, _, _ in WAYS.values():
        for name, method in inspect.getmembers(type(estimator), inspect.isfunction):
            takes_rows = "X" in inspect.signature(method).parameters
            if takes_rows and not name.startswith("_") and name not in not_fitted:
                assert name in tested | set(REFUSED), name


# --- rows as users have them


def test_frame_of_categories_text_times_and_missing_values():
    local = model_of_frames()
    for frame in (parts(), dd.from_pandas(FRAME, npartitions=4)):
        assert same(local.predict(frame), local.predict(FRAME))
        assert same(local.predict_proba(frame), local.predict_proba(FRAME))
        assert same(local.shap_values(frame), local.shap_values(FRAME))
    assert local.predict(parts()).compute().index.equals(FRAME.index)
    assert not local.predict(parts()).known_divisions


def test_categories_that_dask_does_not_know_yet():
    frame = FRAME[["color", "count"]].assign(count=FRAME["count"].astype("category"))
    local = XGBRegressorLite(**FEW).fit(frame, SIGNAL)
    lazy = dd.from_pandas(frame.astype({"color": str, "count": int}), npartitions=3)
    for name in frame:
        lazy[name] = lazy[name].astype("category")
    assert not lazy["count"].cat.known
    assert same(local.predict(lazy), local.predict(frame))


def test_columns_are_matched_by_name():
    local = model_of_frames()
    turned = FRAME[FRAME.columns[::-1]]
    assert same(local.predict(parts(turned)), local.predict(FRAME))
    renamed = FRAME.rename(columns=str.upper)
    with pytest.raises(ValueError, match="feature names should match") as lazy:
        local.predict(parts(renamed))
    with pytest.raises(ValueError, match="feature names should match") as direct:
        local.predict(renamed)
    assert str(lazy.value) == str(direct.value)
    positional = local.predict_proba(parts(renamed), validate_features=False)
    assert same(positional, local.predict_proba(FRAME))


def test_unknown_categories_where_they_are():
    others = FRAME.assign(city=FRAME["city"].where(FRAME.index < 700, "Bonn"))
    local = model_of_frames()
    with pytest.warns(UnknownCategoryWarning, match="Bonn"):
        expected = local.predict_proba(others)
    lazy = local.predict_proba(parts(others))
    with pytest.warns(UnknownCategoryWarning, match="Bonn"):
        assert same(lazy, expected)
    for scheduler in ("synchronous", "threads"):
        with (
            pytest.warns(UnknownCategoryWarning) as told,
            dask.config.set(scheduler=scheduler),
        ):
            lazy.compute()
        if scheduler == "synchronous":  # a thread of Dask has no line of the user's on its stack
            assert {warning.filename for warning in told} == {__file__}
    strict = clone(local).set_params(unknown_category="error").fit(FRAME, CLASSES)
    lazy = strict.predict(parts(others))
    with pytest.raises(ValueError, match="Bonn"):
        lazy.compute()


def test_chunks_of_unknown_length():
    array = da.from_array(X, chunks=(CHUNKS, (1, 2)))
    some = array[array[:, 0] > 0.0]
    local = model("classes")
    lazy = local.predict_proba(some)
    assert np.isnan(lazy.chunks[0]).all()
    assert lazy.chunks[1] == (3,)
    assert same(lazy, local.predict_proba(X[X[:, 0] > 0.0]))
    of_frame = dd.from_pandas(pd.DataFrame(X), npartitions=3).to_dask_array()
    assert same(local.predict(of_frame), local.predict(X))


def test_sparse_chunks():
    dense = np.where(np.isnan(X) | (X < 0.3), 0.0, X)
    local = XGBRegressorLite(**FEW).fit(csr_array(dense), SIGNAL)
    sparse = da.from_array(dense, chunks=(40, 2)).map_blocks(csr_array)
    assert same(local.predict(sparse), local.predict(csr_array(dense)))


def test_integers_and_text_in_arrays():
    words = FRAME[["city", "color"]].astype(object).to_numpy()
    local = XGBRegressorLite(**FEW, categorical_features=[0, 1]).fit(words, SIGNAL)
    assert same(local.predict(da.from_array(words, chunks=30)), local.predict(words))
    counts = FRAME[["count"]].to_numpy()
    local = XGBRegressorLite(**FEW).fit(counts, SIGNAL)
    assert same(local.predict(da.from_array(counts, chunks=30)), local.predict(counts))


def test_labels_of_any_dtype():
    for y in (CLASSES, CLASSES.astype(object), SIGNAL > 0, RELEVANCE.astype(np.int8)):
        local = XGBClassifierLite(**FEW).fit(X, y)
        lazy = local.predict(dd.from_pandas(pd.DataFrame(X), npartitions=2))
        assert lazy.compute().tolist() == local.predict(X).tolist()
        dtype = object if y.dtype == object else pd.Series(y).dtype
        assert lazy.dtype == lazy.compute().dtype == dtype


# --- arguments that belong to rows


def test_base_margin_in_any_form():
    local = model("regressor")
    expected = local.predict(X, base_margin=MARGIN)
    series = dd.from_pandas(pd.Series(MARGIN), npartitions=3)
    for margin in (MARGIN, MARGIN.tolist(), da.from_array(MARGIN, chunks=7)):
        lazy = local.predict(ARRAY, base_margin=margin)
        assert lazy.chunks == (CHUNKS,)
        assert same(lazy, expected)
    for margin in (series, series.to_dask_array(), da.from_array(MARGIN, chunks=30)):
        assert same(local.predict(ROWS, base_margin=margin), expected)
    assert same(local.predict(ROWS.to_dask_array(), base_margin=series), expected)


def test_base_margin_of_several_outputs():
    local, margins = model("classes"), np.column_stack([MARGIN, -MARGIN, 2 * MARGIN])
    expected = local.predict_proba(X, base_margin=margins)
    assert same(local.predict_proba(ARRAY, base_margin=da.from_array(margins, 20)), expected)
    lazy = dd.from_pandas(pd.DataFrame(margins), npartitions=3)
    assert same(local.predict_proba(ROWS, False, lazy), expected)


def test_base_margin_of_other_rows():
    local = model("regressor")
    with pytest.raises(ValueError, match="base_margin has 89 rows and X has 90"):
        local.predict(ARRAY, base_margin=MARGIN[1:])
    unknown = ARRAY[ARRAY[:, 0] > 0.0]
    with pytest.raises(ValueError, match="base_margin has 1 chunks of rows of unknown lengths and"):
        local.predict(unknown, base_margin=MARGIN[X[:, 0] > 0.0])
    frame, rows = pd.DataFrame(X), pd.Series(MARGIN)
    lazy = dd.from_pandas(frame, npartitions=3)
    with pytest.raises(TypeError, match="base_margin is of type ndarray, and X a Dask DataFrame"):
        local.predict(lazy, base_margin=MARGIN)
    for other in (dd.from_pandas(rows, 1), dd.from_pandas(rows, 2).repartition([0, 10, 20, 89])):
        with pytest.raises(ValueError, match=r"base_margin has \d partitions, X has 3"):
            local.predict(lazy, base_margin=other)


def test_warning_of_a_margin_that_is_left_out():
    local = XGBRegressorLite(**FEW).fit(X, SIGNAL, base_margin=MARGIN)
    with pytest.warns(UserWarning, match="was fitted with base_margin"):
        local.predict(da.from_array(X, chunks=30))


def test_strata():
    y = survival_targets(SIGNAL < 1.0, np.exp(SIGNAL), strata=STRATA)
    local = XGBSurvivalLite(**FEW).fit(X, y)
    array, strata = da.from_array(X, chunks=(CHUNKS, -1)), da.from_array(STRATA, chunks=50)
    for method in (local.predict_survival_function, local.predict_cumulative_hazard_function):
        for return_array in (True, False):
            expected = method(X, return_array, strata=STRATA)
            assert same(method(array, return_array, strata=strata), expected)
    frame = dd.from_pandas(pd.DataFrame(X).assign(stratum=STRATA), npartitions=3)
    expected = local.predict_survival_function(X, True, strata=STRATA)
    lazy = local.predict_survival_function(frame[[0, 1, 2]], True, strata=frame["stratum"])
    assert same(lazy, expected)
    with pytest.raises(ValueError, match="pass strata, one for each row"):
        local.predict_survival_function(array)


# --- laziness


def _fails(block):
    raise ArithmeticError("a part that was computed")


def test_nothing_of_the_users_is_computed_before_it_is_asked_for():
    array = da.from_array(X, chunks=(CHUNKS, -1)).map_blocks(_fails, meta=X[:0])
    frame = parts().map_partitions(_fails, meta=FRAME.iloc[:0])
    for lazy in (model("classes").predict_proba(array), model_of_frames().predict(frame)):
        with pytest.raises(ArithmeticError, match="a part that was computed"):
            lazy.compute()


def test_the_model_is_that_of_the_call():
    estimator = XGBRegressorLite(**FEW).fit(X, SIGNAL)
    before, array = estimator.predict(X), da.from_array(X, chunks=(CHUNKS, -1))
    lazy = estimator.predict(array)
    estimator.set_params(n_estimators=1).fit(X, -SIGNAL)
    assert same(lazy, before)
    assert same(estimator.predict(array), estimator.predict(X))


def _models(lazy):
    tasks = dict(lazy.__dask_graph__()).values()
    values = (getattr(task, "value", task) for task in tasks)  # what needs no work has a value
    return [value for value in values if isinstance(value, PartMethod)]


@pytest.mark.parametrize("rows", [da.from_array(X, chunks=10), dd.from_pandas(pd.DataFrame(X), 9)])
def test_the_model_is_in_the_graph_once(rows):
    assert len(_models(model("classes").predict_proba(rows))) == 1
    assert len(_models(dask.optimize(model("classes").predict_proba(rows))[0])) == 1


def test_names_say_what_is_computed():
    estimator = XGBRegressorLite(**FEW).fit(X, SIGNAL)
    name = estimator.predict(ARRAY).name
    assert name.startswith("predict-")
    assert estimator.predict(ARRAY).name == name
    others = {
        estimator.predict(ARRAY, iteration_range=(0, 2)).name,
        estimator.predict(ARRAY, base_margin=da.from_array(MARGIN)).name,
        estimator.predict(ARRAY + 1.0).name,
        clone(estimator).fit(X, -SIGNAL).predict(ARRAY).name,
        estimator.apply(ARRAY).name,
    }
    assert len(others | {name}) == 6


def test_one_thread_a_part_unless_another_number_is_given():
    for n_jobs, expected in ((None, 1), (2, 2), (-1, -1)):
        estimator = XGBRegressorLite(**FEW, n_jobs=n_jobs).fit(X, SIGNAL)
        (part,) = _models(estimator.predict(ARRAY))
        assert part.estimator.n_jobs == expected
        assert estimator.n_jobs == n_jobs


class Powers(XGBRegressorLite):
    """Predicts twice the number, from a power of the features."""

    power = 1

    def predict(self, X, **arguments):
        return 2 * super().predict(np.power(X, self.power) if self.power > 1 else X, **arguments)


def test_subclass_that_changes_the_prediction_or_the_features():
    estimator = Powers(**FEW).fit(X, SIGNAL)
    assert same(estimator.predict(ARRAY), estimator.predict(X))
    assert estimator.score(ARRAY, SIGNAL) == estimator.score(X, SIGNAL)
    estimator.power = 3
    assert same(estimator.predict(ARRAY), estimator.predict(X))
    with pytest.raises(TypeError, match="score gives predict the raw scores of a Dask collection"):
        estimator.score(ARRAY, SIGNAL)


# --- scores


@pytest.mark.parametrize(
    ("way", "y"),
    [
        ("regressor", SIGNAL),
        ("targets", SEVERAL),
        ("classes", CLASSES),
        ("labels", LABELS),
        ("distribution", SIGNAL),
        ("survival", TIMES),
    ],
)
def test_score(way, y):
    estimator = model(way)
    weight = np.arange(1.0, N_ROWS + 1.0)
    for lazy in (y, da.from_array(y, chunks=50) if y.dtype.names is None else y):
        assert estimator.score(ARRAY, lazy) == estimator.score(X, y)
        lazy_weight = da.from_array(weight, chunks=11)
        assert estimator.score(ARRAY, lazy, lazy_weight) == estimator.score(X, y, weight)
    assert estimator.score(ROWS, y, sample_weight=weight) == estimator.score(X, y, weight)


def test_score_of_columns_of_a_frame_and_of_queries():
    estimator = model("targets")
    frame = dd.from_pandas(pd.DataFrame(X).assign(a=SEVERAL[:, 0], b=SEVERAL[:, 1]), npartitions=3)
    assert estimator.score(frame[[0, 1, 2]], frame[["a", "b"]]) == estimator.score(X, SEVERAL)
    qid = np.arange(N_ROWS) // 10
    score = model("ranker").score(ARRAY, RELEVANCE, qid=da.from_array(qid, chunks=7))
    assert score == model("ranker").score(X, RELEVANCE, qid=qid)


def test_scores_bring_no_features(monkeypatch):
    def refuse(*arguments, **named):
        raise AssertionError("features came to the caller")

    estimator, array = model("classes"), da.from_array(X, chunks=10)
    expected = estimator.score(X, CLASSES)
    monkeypatch.setattr(da.Array, "__array__", refuse)
    assert estimator.score(array, CLASSES) == expected


# --- refusals


def test_what_is_not_lazy():
    array, text = (
        da.from_array(X, chunks=10),
        "X is a dask.Array, which has no values yet: pass X.c",
    )
    with pytest.raises(TypeError, match=text):
        next(model("classes").staged_predict_proba(array))
    with pytest.raises(TypeError, match=text):
        model("distribution").predict_dist(array)
    with pytest.raises(TypeError, match=text):
        model("regressor").shap_explanation(array)
    with pytest.raises(TypeError, match=r"X is a dask\.DataFrame, which has no values yet"):
        bin_features(parts())


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        (parts()["size"], "Series"),
        (parts().index, "Index"),
        (parts()["size"].sum(), "Scalar"),
        (dask.delayed(X), "DelayedLeaf"),
        (dask.bag.from_sequence([1, 2]), "Bag"),
    ],
)
def test_other_collections(rows, kind):
    with pytest.raises(TypeError, match=f"X is a dask.{kind}: pass a Dask DataFrame"):
        model("regressor").predict(rows)


def test_arguments_that_each_part_would_need_whole():
    with pytest.raises(TypeError, match=r"X_background is a dask.Array, and every part .*compute"):
        model("regressor").shap_values(ARRAY, X_background=ARRAY)
    with pytest.raises(TypeError, match=r"X_background: X is a dask.Array, which has no values"):
        model("regressor").shap_values(X, X_background=ARRAY)


def test_errors_come_at_once():
    with pytest.raises(NotFittedError):
        XGBRegressorLite().predict(ARRAY)
    with pytest.raises(TypeError, match="did you mean 'base_margin'"):
        model("regressor").predict(ARRAY, base_margins=MARGIN)
    with pytest.raises(TypeError, match="too many positional arguments"):
        model("regressor").apply(ARRAY, (0, 1), 3)
    with pytest.raises(ValueError, match="q=2"):
        model("distribution").predict_quantile(ARRAY, 2)
