"""Targets and weights of Dask collections stay on the workers, and NumPy takes them as arrays."""

import re
from itertools import pairwise

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from sklboost import (
    Loss,
    XGBClassifierLite,
    XGBDistributionLite,
    XGBRankerLite,
    XGBRegressorLite,
    XGBSurvivalLite,
    survival_targets,
)
from sklboost.data.cuts import exact_weights
from sklboost.distributed import columns
from sklboost.distributed.columns import ClusterColumn, open_column
from sklboost.distributed.partitions import open_collection
from sklboost.estimators.fit import preset
from sklboost.estimators.input.survival_targets import SurvivalTargets
from sklboost.objectives.start_values import known_means, weighted_quantile, weighted_quantiles
from sklboost.tree.core.quantization import scale_of_weights
from tests.distributed.conftest import workers_here
from tests.distributed.machines import assert_same_model

N_ROWS = 13_000
# A fit takes as long as there are partitions: two, divided alike, where no more are needed.
CHUNKS = (4500, 8500)
ODD = (4000, 0, 500, 8500)  # one has no row; with the weights below, one more has none that counts


def make_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 4)).round(2)
    return X, X[:, 0] + np.sin(3 * X[:, 1]) + rng.normal(size=N_ROWS), rng.exponential(size=N_ROWS)


X, Y, WEIGHT = make_rows()
# Nearly a third of all, and all of a block and of an odd partition.
WITH_ZEROS = np.where((np.arange(N_ROWS) // 500 == 8) | (X[:, 3] < -0.5), 0.0, WEIGHT)
# Of workers; the cluster of other tests has two. One: test_validation_rows.py.
NUMBERS = [5, pytest.param(3, marks=pytest.mark.slow)]


def in_chunks(values, chunks=CHUNKS):
    return da.from_array(values, chunks=(chunks, *values.shape[1:]))


def refuse(column, dtype=None, copy=None):
    raise AssertionError("the values of a column came to the client")


@pytest.fixture(params=["float64", "float32", "int8"])
def both(request, cluster):
    """A column, which has other partitions than X, and the same values here."""
    values = (10 * Y).astype(request.param)
    partitions, _ = open_collection(in_chunks(X, ODD))
    return open_column(in_chunks(values, 3000), "y", partitions, np.asarray), values


def test_a_column_is_an_array_to_numpy(both):
    column, values = both
    assert (column.shape, column.dtype, column.ndim) == (values.shape, values.dtype, 1)
    assert_array_equal(column, values)
    assert_array_equal(column[3990:4010], values[3990:4010])
    assert column[:N_ROWS] is column
    made, expected = (np.floor(np.abs(some) / 3.0) * 2 > some for some in (column, values))
    assert isinstance(made, ClusterColumn)
    assert made.dtype == bool
    assert_array_equal(made, expected)
    for some, other in ((column, values), (made, expected)):
        assert (some.min(), some.max(), some.any(), some.all()) == (
            *(other.min(), other.max(), other.any(), other.all()),
        )
    assert made.sum(axis=0) == np.sum(made) == expected.sum()
    assert np.any(made) == made.any(axis=-1) == expected.any()
    with pytest.raises(np.exceptions.AxisError):
        made.all(axis=1)
    assert np.fmin.reduce(column.astype(np.float64), initial=np.nan) == values.min()
    assert np.multiply.reduce(made) == np.multiply.reduce(expected)  # here, as all that follows
    assert_array_equal(np.modf(column), np.modf(values))
    assert_array_equal(column * WEIGHT, values * WEIGHT)
    assert_array_equal(np.concatenate([column, values]), np.concatenate([values, values]))


def test_what_a_fit_computes_of_columns(both):
    column, values = both
    column, values = column.astype(np.float64), values.astype(np.float64)
    weight, its = np.abs(column) + 0.1, np.abs(values) + 0.1
    assert_array_equal(exact_weights(weight), exact_weights(its))
    assert scale_of_weights(weight, N_ROWS) == scale_of_weights(its, N_ROWS)
    change = np.exp
    assert_array_equal(known_means(column, weight, change), known_means(values, its, change))
    ones, its = (1.0 * (some > 0.0) for some in (column, values))
    empty = np.empty(0)
    assert_array_equal(known_means(ones, empty, np.log1p), known_means(its, empty, np.log1p))


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("weights", ["none", "fractions", "tenths", "tiny", "one heavy", "zeros"])
def test_quantiles_are_those_of_one_machine(monkeypatch, weights):
    weight = {
        "none": np.empty(0),
        "fractions": WEIGHT,
        "tenths": 0.1 * (1 + np.arange(N_ROWS) % 3),  # whose sums are rounded, and tie
        "tiny": 1e-80 * WEIGHT,
        "one heavy": np.where(np.arange(N_ROWS) == 4100, 1e7, WEIGHT),
        "zeros": WITH_ZEROS,
    }[weights]
    two = np.where(np.arange(N_ROWS) % 6 < 3, -1.5, 1e-300)  # each with half of the weight
    shuffled = np.random.default_rng(0).permutation(N_ROWS)
    alphas = np.array([0.5, 0.001, 0.25, 0.999, 0.5 + 2**-40])
    columns_of = {
        "any": (Y, Y),
        "tied": (Y.round(), Y.round()),
        "huge": (1e200 * Y, 1e200 * Y),
        "two": (two, two),
        "zeros": (0.0 * Y, np.where(Y > 0, 0.0, -0.0)),
    }
    # the kinds of values and of weights do not depend on one another
    is_odd = weights == "fractions"
    some_kinds = {"none": ["tied", "two"], "tenths": ["tied", "two"], "zeros": ["tied"]}
    kinds = columns_of if is_odd else some_kinds.get(weights, ["any"])
    partitions, _ = open_collection(in_chunks(X, ODD if is_odd else CHUNKS))

    def opened(of):
        chunks = 3000 if is_odd else CHUNKS
        return open_column(in_chunks(of, chunks), "y", partitions, np.asarray) if len(of) else of

    column_of_weight = opened(weight)
    for kind in kinds:
        values, column = columns_of[kind][0], opened(columns_of[kind][1])
        expected = weighted_quantiles(values, weight, alphas)
        again = weighted_quantiles(
            values[shuffled], weight[shuffled] if len(weight) else weight, alphas
        )
        with monkeypatch.context() as patch:
            patch.setattr(ClusterColumn, "__array__", refuse)
            assert_array_equal(weighted_quantiles(column, column_of_weight, alphas), expected)
        assert_array_equal(again, expected)
    if weights in ("none", "tenths"):
        few = slice(12_996)
        some = weight[few] if len(weight) else weight
        assert weighted_quantile(two[few], some, 0.5) == -0.75


# Whose targets and weights are not needed on the client.
MODELS = {
    "squared error": XGBRegressorLite(n_estimators=3, subsample=0.6, random_state=0),
    "Poisson": XGBRegressorLite(n_estimators=2, objective="count:poisson", min_child_samples=9),
    "logarithms": XGBRegressorLite(n_estimators=2, objective="reg:squaredlogerror"),
    "log loss": XGBRegressorLite(n_estimators=2, objective="reg:logistic"),
    "of the user": XGBRegressorLite(
        n_estimators=2, objective=lambda y, p: (p - np.sqrt(y), np.ones_like(y))
    ),
    "absolute error": XGBRegressorLite(n_estimators=2, objective="reg:absoluteerror"),
    "quantiles": XGBRegressorLite(
        n_estimators=2, objective="reg:quantileerror", quantile_alpha=[0.9, 0.1, 0.5]
    ),
    "percentages": XGBRegressorLite(n_estimators=2, objective="reg:mape"),
    "expectiles": XGBRegressorLite(
        n_estimators=2, objective="reg:expectileerror", expectile_alpha=[0.2, 0.7]
    ),
    "Huber": XGBRegressorLite(n_estimators=2, objective="reg:huber", huber_slope=0.5),
    "log-cosh": XGBRegressorLite(n_estimators=2, objective="reg:logcosh"),
    "focal": XGBClassifierLite(n_estimators=2, objective="binary:focal", class_weight="balanced"),
    "hinge": XGBClassifierLite(n_estimators=2, objective="binary:hinge"),
}


# The others have weights in tests below, with margins, several targets, or more workers; and those
# below several targets do all that one target does.
WITH_WEIGHTS = {"Poisson", "logarithms", "log loss", "hinge"}
WITH_SEVERAL = ("of the user", "quantiles", "percentages", "expectiles", "Huber")


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("name", [name for name in MODELS if name not in WITH_SEVERAL])
def test_they_do_not_come_to_the_client(monkeypatch, name):
    weight = there = None
    if name == "Poisson":  # each column is divided in another way
        weight, there = WITH_ZEROS, in_chunks(WITH_ZEROS, 5000)
    elif name in WITH_WEIGHTS:
        weight, there = WEIGHT, in_chunks(WEIGHT)
    has_classes = name in ("log loss", "logarithms", "focal", "hinge")
    y = (Y > 0) * 1 if has_classes else np.abs(Y).astype(np.float32)
    one = clone(MODELS[name]).fit(X, y, sample_weight=weight)
    monkeypatch.setattr(ClusterColumn, "__array__", refuse)
    chunks = (ODD, 3000) if name == "Poisson" else (CHUNKS, CHUNKS)
    rows = [in_chunks(values, of) for values, of in zip((X, y), chunks, strict=True)]
    assert_same_model(one, clone(MODELS[name]).fit(*rows, sample_weight=there))


# With zeros, and tails for which steps of the search of a start value are checked.
HEAVY = np.round(8.0 * np.exp(3.0 * Y))


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("name", ["laplace", "lognormal", "zero_inflated_negative_binomial"])
def test_targets_of_distributions_do_not_come_to_the_client(monkeypatch, name):
    model = XGBDistributionLite(distribution=name, n_estimators=2)
    y, weight = HEAVY + (name == "lognormal"), None if name == "lognormal" else WITH_ZEROS
    one = clone(model).fit(X, y, sample_weight=weight)
    monkeypatch.setattr(ClusterColumn, "__array__", refuse)
    weight = None if weight is None else in_chunks(weight)
    other = clone(model).fit(in_chunks(X), in_chunks(y), sample_weight=weight)
    assert_same_model(one, other)


@pytest.mark.usefixtures("cluster")
def test_errors_of_targets_of_distributions():
    for name, y, message in [
        ("lognormal", with_value(HEAVY + 1.0, 9000, -2.0), "y.9000.=-2: .* targets > 0"),
        ("poisson", with_value(HEAVY, 4100, 0.5), "y.4100.=0.5: .* whole numbers"),
        ("zero_inflated_gamma", 0.0 * HEAVY, "0 in every row of positive weight"),
    ]:
        for rows in ((X, y), (in_chunks(X), in_chunks(y))):
            with pytest.raises(ValueError, match=message):
                XGBDistributionLite(distribution=name, n_estimators=2).fit(*rows)


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("name", ["of the user", "quantile", "Huber", "focal"])
def test_margins_do_not_come_to_the_client(monkeypatch, name):
    of_all = {**MODELS, "quantile": XGBRegressorLite(n_estimators=2, objective="reg:quantileerror")}
    y = (Y > 0) * 1 if name == "focal" else np.abs(Y).astype(np.float32)
    model, margin = of_all[name], 0.3 * X[:, 3]
    one = clone(model).fit(X, y, sample_weight=WITH_ZEROS, base_margin=margin)
    chunks = (ODD, 3000, 5000, 6000) if name == "focal" else [CHUNKS] * 4
    columns = (X, y, WITH_ZEROS, margin)
    *there, weight, its = (in_chunks(of, each) for of, each in zip(columns, chunks, strict=True))
    given = {"sample_weight": weight, "base_margin": its}
    with monkeypatch.context() as patch:
        patch.setattr(ClusterColumn, "__array__", refuse)
        groups = in_chunks(np.arange(N_ROWS) // 7, 2000) if name == "focal" else None
        other = clone(model).fit(*there, **given, groups=groups)
    assert_same_model(one, other)
    if name == "Huber":  # continued by the same loss, and by another one
        for slope in (0.5, 1.5):
            more, its = (clone(model).set_params(huber_slope=slope) for _ in range(2))
            more.fit(X, y, sample_weight=WITH_ZEROS, base_margin=margin, init_model=one)
            its.fit(*there, **given, init_model=other)
            assert_same_model(more, its)


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("row", "value", "message"),
    [
        (4100, np.nan, "base_margin contains NaN"),
        (9000, -np.inf, "base_margin contains infinity"),
        (slice(500), 0.0, r"base_margin has shape \(12500,\): it must be one raw score for each"),
    ],
)
def test_errors_of_margins(row, value, message):
    margin = with_value(Y, row, value) if isinstance(row, int) else Y[500:]
    for given in (margin, in_chunks(margin, 4000)):
        rows = (X, Y) if given is margin else (in_chunks(X), in_chunks(Y))
        with pytest.raises(ValueError, match=message):
            XGBRegressorLite().fit(*rows, base_margin=given)
    codes = np.digitize(Y, [-1.0, 1.0])
    for rows, given in (((X, codes), Y), ((in_chunks(X), in_chunks(codes)), in_chunks(Y))):
        with pytest.raises(ValueError, match=r"base_margin has 1 column\(s\), but the model has 3"):
            XGBClassifierLite().fit(*rows, base_margin=given)


# Of other sizes, so that a wrong column changes the model; not all known, and some rows of none.
SEVERAL = np.column_stack([np.abs(Y), np.where(X[:, 0] > 0, Y**2, np.nan), 10 + X[:, 2] + Y])
SEVERAL[:, 0] += 0.01
SEVERAL[np.arange(N_ROWS) // 500 == 9] = np.nan  # a whole partition of X, and rows of others
MARGINS = np.column_stack([X[:, 3], 0.3 * X[:, 2], 9 + X[:, 1]])


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    "name",
    [
        *("squared error", "of the user", "quantiles", "percentages", "expectiles", "Huber"),
        *("vectors", "labels"),
    ],
)
def test_several_targets_do_not_come_to_the_client(monkeypatch, name):
    vectors = clone(MODELS["squared error"]).set_params(multi_strategy="multi_output_tree")
    labels = XGBClassifierLite(n_estimators=2)
    model = {**MODELS, "vectors": vectors, "labels": labels}[name]
    given = {}
    if name != "of the user":  # with its own weights and margins
        given["sample_weight"] = WITH_ZEROS
    if name in ("squared error", "Huber"):
        given["base_margin"] = MARGINS
    y = np.nan_to_num(SEVERAL) if name == "of the user" else SEVERAL
    if name == "labels":
        y = np.where(np.isnan(y), np.nan, y > [0.5, 1.0, 10.0])
    one = clone(model).fit(X, y, **given)
    monkeypatch.setattr(ClusterColumn, "__array__", refuse)
    # each column is divided in another way, and the targets are apart
    chunks = (ODD, 3000, 5000, 6000) if name == "squared error" else [CHUNKS] * 4
    there = {key: in_chunks(of, chunks[2 + k]) for k, (key, of) in enumerate(given.items())}
    targets = da.from_array(y, chunks=(chunks[1], 2 if name == "squared error" else 3))
    other = clone(model).fit(in_chunks(X, chunks[0]), targets, **there)
    assert_same_model(one, other)
    is_used = ~np.isnan(y).all(axis=1) & (given.get("sample_weight", WEIGHT) > 0.0)
    assert one.fit_report_.n_samples == other.fit_report_.n_samples == is_used.sum()


def in_parts(first, *others):
    return dd.from_map(lambda part: part, [first, *others], meta=first[:0])


@pytest.mark.parametrize("n_workers", NUMBERS)
def test_several_targets_have_the_same_bits_on_any_number_of_workers(monkeypatch, n_workers):
    rows = np.arange(21_000) % 12_961  # six blocks, of rows that are in another order each time
    many, y, weight = X[rows], SEVERAL[rows], np.where(rows % 50 == 1, 0.0, WEIGHT[rows])
    frame = pd.DataFrame(y, columns=list("stu")).assign(weight=weight)
    model = XGBRegressorLite(n_estimators=3, objective="reg:absoluteerror")
    one = clone(model).fit(many, y, sample_weight=weight)
    monkeypatch.setattr(ClusterColumn, "__array__", refuse)
    with workers_here(n_workers):
        # partitions without rows, too, which have the columns all the same
        bounds = (0, 0, 100, 100, 21_000)
        there = in_parts(*(frame[start:stop] for start, stop in pairwise(bounds)))
        given = da.from_array(many, chunks=(9500, 4)), there[["s", "t", "u"]]
        other = clone(model).fit(*given, sample_weight=there["weight"])
        assert other.fit_report_.n_threads == n_workers
    assert_same_model(one, other)


# Times of events that are known, later than known, or between two; a part of these are 0 and 1.
TIMES = np.exp(Y).round(1) + 0.1
BOUNDS = np.column_stack([TIMES, np.where(X[:, 1] > 0.5, np.inf, TIMES)])
BOUNDS[::7, 1] = BOUNDS[::7, 0] + 1.0
BOUNDS[4000:4500] = np.where(X[4000:4500, :1] > 0.0, [1.0, 1.0], [0.0, 1.0])
QUERIES = np.random.default_rng(1).integers(300, size=N_ROWS)  # anywhere
QUERIES[4000:4500] = 300  # all of an odd partition of X, and the last to have a number
NAMES = np.array([f"query {number * 37 % 301}" for number in range(301)])
RELEVANCE = np.digitize(Y, np.quantile(Y, [0.5, 0.75, 0.9]))
OF_QUERIES = np.random.default_rng(2).integers(3, size=301) / 4  # a third of the weights is 0
RANKER = XGBRankerLite(n_estimators=2, random_state=0, min_child_weight=0)
AFT = XGBSurvivalLite(n_estimators=2, objective="survival:aft")


def records_of(bounds, **fields):
    return survival_targets(lower=bounds[:, 0], upper=bounds[:, 1], **fields)


@pytest.fixture
def stay(monkeypatch):
    """Return what lets no column come to the client from then on, nor a collection, unread."""

    def forbid(as_array=refuse):
        monkeypatch.setattr(ClusterColumn, "__array__", as_array)
        for kind in (da.Array, dd.DataFrame, dd.Series):
            monkeypatch.setattr(kind, "compute", refuse)

    return forbid


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("form", ["numbers", "bounds", "records", "events and strata"])
def test_times_do_not_come_to_the_client(monkeypatch, stay, form):
    # baseline hazards need all rows in one place
    monkeypatch.setattr(SurvivalTargets, "reads_scores", lambda *_: False)
    events = dict(event=BOUNDS[:, 1] < np.inf, time=TIMES, entry_time=TIMES / 2)
    distribution = {"numbers": "extreme", "bounds": "logistic"}.get(form, "normal")
    model, y = clone(AFT).set_params(aft_loss_distribution=distribution), BOUNDS
    given = {"sample_weight": WITH_ZEROS, "base_margin": X[:, 2]}
    if form == "numbers":
        y, given = np.where(BOUNDS[:, 1] < np.inf, TIMES, -TIMES), {"sample_weight": WITH_ZEROS}
    elif form == "records":
        y, given = records_of(BOUNDS), {}
    elif form == "events and strata":
        model, y = XGBSurvivalLite(n_estimators=2), pd.DataFrame(events)
        y["stratum"] = NAMES[QUERIES]
    one = clone(model).fit(X, y, **given)
    stay()
    is_frame = isinstance(y, pd.DataFrame)  # then each column is divided in another way
    there = dd.from_pandas(y, npartitions=3) if is_frame else in_chunks(y)
    columns = {name: in_chunks(of, 5000 if is_frame else CHUNKS) for name, of in given.items()}
    other = clone(model).fit(in_chunks(X, ODD if is_frame else CHUNKS), there, **columns)
    assert_same_model(one, other)
    assert_array_equal(one.unique_times_, other.unique_times_)
    assert_array_equal(one._fitted.targets.strata, other._fitted.targets.strata)


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("objective", ["rank:ndcg", "rank:map", "rank:pairwise", "rank:yeti"])
def test_rankings_do_not_come_to_the_client(stay, objective):
    y = np.minimum(RELEVANCE, 1) if objective == "rank:map" else RELEVANCE
    model, weight = clone(RANKER).set_params(objective=objective), OF_QUERIES[QUERIES]
    # of the first, each column is divided in another way
    chunks = (ODD, 3000, 5000, 2000) if objective == "rank:ndcg" else [CHUNKS] * 4
    given, there = {"qid": NAMES[QUERIES]}, {"qid": in_chunks(NAMES[QUERIES], chunks[3])}
    if objective == "rank:map":  # weights of queries, and no weights
        weight, given = None, {"group": np.full(260, 50)}
        there = given
    elif objective == "rank:pairwise":
        weight, given = OF_QUERIES[:260], {"group": np.full(260, 50)}
        there = given
    elif objective == "rank:yeti":
        there = {"qid": in_chunks(given["qid"].astype(object), chunks[3])}
    one = clone(model).fit(X, y, weight, **given)
    stay()
    if weight is not None and len(weight) == N_ROWS:
        weight = in_chunks(weight, chunks[2])
    other = clone(model).fit(in_chunks(X, chunks[0]), in_chunks(y, chunks[1]), weight, **there)
    assert_same_model(one, other)
    assert one.fit_report_.n_samples == other.fit_report_.n_samples


@pytest.mark.parametrize("n_workers", NUMBERS)
def test_times_and_rankings_have_the_same_bits_on_any_number_of_workers(stay, n_workers):
    rows, features = np.arange(21_000) % 12_961, list("abcd")
    frame = pd.DataFrame(X, columns=features).assign(
        lower=BOUNDS[:, 0], upper=BOUNDS[:, 1], y=RELEVANCE, name=NAMES[QUERIES]
    )
    frame["weight"] = OF_QUERIES[QUERIES] + 0.25 * (QUERIES < 150)
    frame, judges = frame.loc[rows].assign(qid=lambda table: table["name"]), frame[-2000:]
    ranker = XGBRankerLite(
        n_estimators=9, early_stopping_rounds=2, learning_rate=1.0, random_state=0
    )
    aft = XGBSurvivalLite(n_estimators=9, early_stopping_rounds=2, objective="survival:aft")

    def fitted(table, judges):
        bounds, own = ["lower", "upper"], {"sample_weight": table["weight"]}
        own |= dict(X_val=judges[features], sample_weight_val=judges["weight"])
        times = clone(aft).fit(table[features], table[bounds], **own, y_val=judges[bounds])
        own |= dict(y_val=judges["y"], qid_val=judges["name"])
        return times, clone(ranker).fit(table[[*features, "qid"]], table["y"], **own)

    def of_judges_only(column, dtype=None, copy=None):
        assert len(column) <= 2000, "the values of a column came to the client"
        return array(column, dtype, copy)

    alone, array = fitted(frame, judges), ClusterColumn.__array__
    stay(of_judges_only)
    with workers_here(n_workers):
        # partitions without rows, too
        bounds = (0, 0, 7000, 21_000)
        there = in_parts(*(frame[start:stop] for start, stop in pairwise(bounds)))
        for one, other in zip(alone, fitted(there, in_parts(judges[:0], judges)), strict=True):
            assert_same_model(one, other)
            assert one.evals_result_ == other.evals_result_
            assert other.fit_report_.n_threads > 1


@pytest.mark.usefixtures("cluster")
def test_errors_of_times_and_queries():
    wrong = with_value(BOUNDS, (4100, 1), 0.5)
    wrong[4100, 0] = 0.7
    events = np.column_stack([TIMES, 1.0 * (X[:, 1] > 0.5)])
    faults = {
        r"upper bound of y\[\d+\]=0\.5: it is below the lower bound": (AFT, wrong, {}),
        r"y\[:, 1\] has nothing but 0 and 1: if these are events": (AFT, events, {}),
        r"y\[9\]=0: objective='survival:aft' needs times above 0": (
            *(AFT, records_of(with_value(BOUNDS, 9, 0.0)), {}),
        ),
        r"qid has no value in 1 row\(s\), the first is row": (
            *(RANKER, RELEVANCE, {"qid": with_value(1.0 * QUERIES, 9000, np.nan)}),
        ),
        r"y\[4100\]=32: objective='rank:ndcg' needs whole numbers": (
            *(RANKER, with_value(RELEVANCE, 4100, 32), {"qid": QUERIES}),
        ),
        r"sample_weight has shape \(12999,\): .* of the 301 queries, .* of the 13000 rows": (
            *(RANKER, RELEVANCE, {"qid": QUERIES, "sample_weight": WEIGHT[1:]}),
        ),
    }
    for message, (model, y, given) in faults.items():
        there = {name: in_chunks(values, 4000) for name, values in given.items()}
        for rows, more in (((X, y), given), ((in_chunks(X), in_chunks(y, 4000)), there)):
            with pytest.raises(ValueError, match=message):
                clone(model).fit(*rows, **more)
    for labels in (QUERIES.astype(object), with_value(NAMES[QUERIES].astype(object), 9, 9)):
        # partitions of different kinds: what they are together, one place has to say
        one = clone(RANKER).fit(X, RELEVANCE, qid=labels)
        there = in_chunks(X), in_chunks(RELEVANCE)
        assert_same_model(one, clone(RANKER).fit(*there, qid=in_chunks(labels)))


@pytest.mark.parametrize("n_workers", NUMBERS)
def test_the_same_bits_on_any_number_of_workers(monkeypatch, n_workers):
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=Y, weight=WEIGHT)
    frame["town"] = pd.Categorical(np.where(Y > 1, "Oslo", np.where(X[:, 2] > 0, "Rome", "Bern")))
    features = [*"abcd", "town"]
    given = {"sample_weight": frame["weight"], "base_margin": frame["a"]}
    absolute = XGBRegressorLite(n_estimators=3, objective="reg:absoluteerror")
    held_out = XGBRegressorLite(n_estimators=3, early_stopping_rounds=2, random_state=1)
    classifier = XGBClassifierLite(n_estimators=2, class_weight="balanced")

    def fitted(table):
        columns = {name: table[column.name] for name, column in given.items()}
        yield clone(absolute).fit(table[features], table["y"], **columns)
        yield clone(held_out).fit(table[features], table["y"], table["weight"])
        yield clone(classifier).fit(table[[*"abcd"]], table["town"], sample_weight=table["weight"])

    alone = [*fitted(frame)]
    monkeypatch.setattr(ClusterColumn, "__array__", refuse)
    with workers_here(n_workers):
        for one, other in zip(alone, fitted(dd.from_pandas(frame, npartitions=3)), strict=True):
            assert_same_model(one, other)


# Labels of three classes, 0 to 2, or of two.
LABELS = {
    "text": lambda codes: np.array(["Bern", "Rome", "Reykjavik"])[codes],
    "objects": lambda codes: np.array(["Bern", "Rome", "Reykjavik"], object)[codes],
    "bools": lambda codes: codes > 0,
    "floats": lambda codes: np.maximum(codes, 1) * 2.0,
    "dates": lambda codes: np.datetime64("2020-02-02") + codes,
    "one class": lambda codes: np.zeros(len(codes), dtype=int),
}


def of_classes(y, raw_score):
    exponentials = np.exp(raw_score - raw_score.max(axis=1, keepdims=True))
    shares = exponentials / exponentials.sum(axis=1, keepdims=True)
    is_class = y[:, np.newaxis] == np.arange(raw_score.shape[1])
    return shares - is_class, shares * (1 - shares) + 1e-9


CLASSIFIERS = [
    XGBClassifierLite(n_estimators=2),
    XGBClassifierLite(n_estimators=2, class_weight="balanced", scale_pos_weight=2),
    XGBClassifierLite(n_estimators=2, objective=of_classes),
    XGBClassifierLite(n_estimators=2, objective="multi:onevsrest"),
]


@pytest.mark.filterwarnings("ignore:scale_pos_weight")
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("kind", LABELS)
def test_classes_do_not_come_to_the_client(monkeypatch, kind):
    y = LABELS[kind](np.digitize(Y, [-1.0, 1.0]))
    chunks = (ODD, 5000) if kind == "objects" else (CHUNKS, CHUNKS)
    for classifier in CLASSIFIERS if kind == "text" else CLASSIFIERS[1:2]:
        is_weighted = classifier is not CLASSIFIERS[0]
        weights = (WEIGHT, in_chunks(WEIGHT, chunks[1])) if is_weighted else (None, None)
        one = clone(classifier).fit(X, y, sample_weight=weights[0])
        with monkeypatch.context() as patch:
            patch.setattr(ClusterColumn, "__array__", refuse)
            rows = [in_chunks(values, chunks[0]) for values in (X, y)]
            other = clone(classifier).fit(*rows, sample_weight=weights[1])
        assert_same_model(one, other)
        assert_array_equal(one.classes_, other.classes_, strict=True)


@pytest.mark.usefixtures("cluster")
def test_rows_of_weight_0_stay_on_the_workers(monkeypatch):
    letters = np.array(["a", "b", "c"])
    given = {"sample_weight": WITH_ZEROS}
    # a class that only rows of weight 0 have is none
    y = letters[np.where(WITH_ZEROS > 0, (Y > 0) * 1, 2)]
    for model, targets in ((XGBRegressorLite(n_estimators=3), Y), (CLASSIFIERS[1], y)):
        one = clone(model).fit(X, targets, **given)
        with monkeypatch.context() as patch:
            patch.setattr(ClusterColumn, "__array__", refuse)
            there = in_chunks(targets, 3000), in_chunks(WITH_ZEROS, 5000)
            other = clone(model).fit(in_chunks(X, ODD), there[0], sample_weight=there[1])
        assert_same_model(one, other)
        assert one.fit_report_.n_samples == other.fit_report_.n_samples == (WITH_ZEROS > 0).sum()
    assert other.classes_.tolist() == ["a", "b"]
    frame = pd.DataFrame(X, columns=list("wxyz")).assign(
        letter=pd.Categorical(letters[(Y > 0) * 1])
    )
    model = XGBRegressorLite(n_estimators=3)
    one = clone(model).fit(frame, Y, **given)
    with monkeypatch.context() as patch:
        patch.setattr(ClusterColumn, "__array__", refuse)
        there = dd.from_pandas(frame, npartitions=2)
        other = clone(model).fit(there, in_chunks(Y), sample_weight=in_chunks(WITH_ZEROS))
    assert_same_model(one, other)


class FaultyInOneRow(Loss):
    def gradients(self, y, raw_score):
        return np.where(y == Y[9_000], np.nan, raw_score - y), np.ones_like(y)


def test_an_error_names_the_row_where_others_have_weight_0(cluster):
    weight = np.where(np.arange(N_ROWS) % 9 == 1, 0.0, 1.0)
    with pytest.raises(ValueError, match="the gradient for row 9000 of X in round 0 is nan"):
        XGBRegressorLite(objective=FaultyInOneRow()).fit(
            in_chunks(X), in_chunks(Y), sample_weight=in_chunks(weight)
        )


# Copies, of several weights, and a target and a label that few rows have.
COPIES = np.column_stack([X[:, 0].round(), X[:, 1] > 0.0])
ROUNDED = Y.round()
RARE = np.where(np.isin(np.arange(N_ROWS), [4100, 9000]), Y, np.nan)
HELD_OUT = {
    "copies": (
        XGBRegressorLite(subsample=0.5, random_state=1),
        ROUNDED,
        {"base_margin": X[:, 0]},
    ),
    "weights": (XGBRegressorLite(), ROUNDED, {"sample_weight": WITH_ZEROS.round(1)}),
    "classes": (
        XGBClassifierLite(refit=True, class_weight="balanced", validation_fraction=0.37),
        np.digitize(Y, [-1.0, 1.0]),
        {"sample_weight": WITH_ZEROS},
    ),
    "groups": (
        XGBRegressorLite(),
        Y,
        {"sample_weight": WITH_ZEROS, "groups": NAMES[QUERIES]},
    ),
    "the last": (XGBRegressorLite(validation_split="time"), Y, {"sample_weight": WITH_ZEROS}),
    "rare values": (XGBRegressorLite(validation_fraction=0.9), np.column_stack([Y, RARE]), {}),
    "rare labels": (
        XGBClassifierLite(validation_fraction=0.9),
        np.column_stack([Y > 0.0, -np.inf < RARE]).astype(int),
        {"sample_weight": WEIGHT},
    ),
}


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("name", HELD_OUT)
def test_rows_to_hold_out_are_chosen_on_the_workers(monkeypatch, stay, name):
    monkeypatch.setattr(columns, "_ROWS_OF_GROUP", 7000)  # equal hashes are found a part at a time
    model, y, given = HELD_OUT[name]
    model = clone(model).set_params(n_estimators=4, early_stopping_rounds=2)
    rows = COPIES if name in ("copies", "weights") else X
    one = clone(model).fit(rows, y, **given)
    n_held_out = one.fit_report_.n_validation_samples
    stay()
    is_odd = name in ("weights", "groups")
    chunks = (ODD, 6500, 5000) if is_odd else [CHUNKS] * 3
    there = {name: in_chunks(values, chunks[2]) for name, values in given.items()}
    other = model.fit(in_chunks(rows, chunks[0]), in_chunks(y, chunks[1]), **there)
    assert_same_model(one, other)
    assert one.evals_result_ == other.evals_result_
    assert other.fit_report_.n_validation_samples == n_held_out > 0


@pytest.mark.usefixtures("cluster")
def test_a_preset_brings_the_rows_of_its_sample_only(monkeypatch, stay):
    # then rounds are counted on all rows, and judged by a fifth of them
    monkeypatch.setattr(preset, "_MOST_COMPARED", 600)
    monkeypatch.setattr(preset, "_MOST_ROUNDS", 5)
    model = XGBClassifierLite(preset="auto", max_depth=3, grow_policy="depthwise")
    model.set_params(extra_trees=False, colsample_bylevel=1.0)
    one = clone(model).fit(X, Y > 0.7, sample_weight=WITH_ZEROS)
    as_array = ClusterColumn.__array__

    def bring(column, dtype=None, copy=None):
        assert len(column) <= 700
        return as_array(column, dtype)

    stay(bring)
    there = in_chunks(X), in_chunks(Y > 0.7)
    other = clone(model).fit(*there, sample_weight=in_chunks(WITH_ZEROS))
    assert other.chosen_params_.reasons == one.chosen_params_.reasons
    assert_same_model(one, other)


def test_what_needs_all_rows_brings_them_here(cluster):
    few, held_out = slice(3000), dict(early_stopping_rounds=2)
    # margins and groups in memory
    model = XGBRegressorLite(n_estimators=6, random_state=0, **held_out)
    given = {
        "groups": QUERIES,
        "base_margin": np.linspace(-1, 1, N_ROWS),
        "sample_weight": WITH_ZEROS,
    }
    there = in_chunks(X), in_chunks(Y)
    one = clone(model).fit(X, Y, **given)
    given["sample_weight"] = in_chunks(WITH_ZEROS)
    assert_same_model(one, clone(model).fit(*there, **given))
    there = in_chunks(X[few], 1600)
    # and metrics that are no means of rows
    model, times = clone(AFT).set_params(**held_out), records_of(BOUNDS[few])
    one = clone(model).fit(X[few], times)
    assert_same_model(one, model.fit(there, in_chunks(times, 1600)))
    model = XGBSurvivalLite(n_estimators=2, **held_out)
    times = np.where(BOUNDS[:, 1] < np.inf, TIMES, -TIMES)[few]
    assert_same_model(clone(model).fit(X[few], times), model.fit(there, in_chunks(times, 1600)))
    model, names = clone(RANKER).set_params(**held_out), NAMES[QUERIES[few]]  # of which some
    weight = 0.5 + np.arange(len(set(names))) % 3  # of queries
    one = clone(model).fit(X[few], RELEVANCE[few], weight, qid=names)
    y, weight = in_chunks(RELEVANCE[few], 1600), da.from_array(weight, chunks=200)
    assert_same_model(one, model.fit(there, y, weight, qid=in_chunks(names, 2000)))


@pytest.mark.usefixtures("cluster")
def test_errors_of_rows_to_hold_out():
    given = {"groups": np.repeat("a", N_ROWS)}
    for rows, more in (
        ((X, Y), given),
        ((in_chunks(X), in_chunks(Y)), {"groups": in_chunks(given["groups"])}),
    ):
        with pytest.raises(ValueError, match="one label only, 'a': they are held out whole"):
            XGBRegressorLite(early_stopping_rounds=2).fit(*rows, **more)


def with_value(values, row, value):
    changed = values.copy()
    changed[row] = value
    return changed


FAULTS = {
    "contains NaN: there is no value in 1 row": (with_value(Y, 4100, np.nan), WEIGHT),
    "contains infinity": (with_value(Y, 4100, np.inf), WEIGHT),
    "y contains 1e\\+31": (with_value(Y, 7, 1e31), WEIGHT),
    "y varies by 1e-40 only": (with_value(np.zeros(N_ROWS), 7, 1e-40), WEIGHT),
    r"sample_weight\[4100\]=-1": (Y, with_value(WEIGHT, 4100, -1.0)),
    "sample_weight is zero for every row": (Y, np.zeros(N_ROWS)),
    "the largest sample_weight is 1e\\+101": (Y, with_value(WEIGHT, 9000, 1e101)),
    "but y has 12,000 rows": (Y[:12_000], WEIGHT),
    "inconsistent numbers of samples": (Y, WEIGHT[1000:]),
}


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("message", FAULTS)
def test_errors(message):
    y, weight = (in_chunks(values, 4000) for values in FAULTS[message])
    with pytest.raises(ValueError, match=message) as caught:
        XGBRegressorLite().fit(in_chunks(X), y, sample_weight=weight)
    if "contains NaN" in message:
        (note,) = caught.value.__notes__
        assert note == "This was partition 1 of y, counted from 0; rows are counted within it."


FAULTS_OF_SEVERAL = {
    r"contains infinity.* in 1 row\(s\), the first is row 100, column 2": (100, 2, -np.inf),
    r"y\[:, 1\] contains 1e\+31": (4100, 1, 1e31),
    r"y\[:, 1\] varies by 1e-40 only": (slice(None), 1, 1e-40 * (np.arange(N_ROWS) == 9)),
    r"y\[:, 2\] is NaN, not known, in every row": (slice(None), 2, np.nan),
    r"y\[4100, 1\]=-1: objective='count:poisson'": (4100, 1, -1.0),
}


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("message", FAULTS_OF_SEVERAL)
def test_errors_of_several_targets(message):
    row, column, value = FAULTS_OF_SEVERAL[message]
    y = np.abs(np.column_stack([Y, X[:, 0], X[:, 1]]))
    y[row, column] = value
    model = XGBRegressorLite(objective="count:poisson")
    for given in ((X, y), (in_chunks(X), in_chunks(y, 4000))):
        with pytest.raises(ValueError, match=message):
            clone(model).fit(*given)


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("columns", [["t", "s"], ["s"]])
@pytest.mark.parametrize("argument", ["y", "base_margin"])
def test_partitions_of_targets_have_the_same_columns(columns, argument):
    frame = pd.DataFrame({"s": Y, "t": X[:, 1]})
    parts = [frame[:5000], frame.loc[5000:5999, columns], frame[6000:]]
    frames = dict.fromkeys(["y", "base_margin"], dd.from_pandas(frame, npartitions=2))
    frames[argument] = in_parts(*parts)
    message = rf"the columns {re.escape(str(columns))}, and not \['s', 't'\].* the same order"
    with pytest.raises(ValueError, match=message) as raised:
        XGBRegressorLite().fit(in_chunks(X), **frames)
    (note,) = raised.value.__notes__
    assert note.startswith(f"This was partition 1 of {argument}, counted from 0")


@pytest.mark.usefixtures("cluster")
def test_labels_in_several_columns_are_1_or_0():
    y = 1.0 * (np.column_stack([Y, X[:, 0]]) > 0)
    for given in ((X, y), (in_chunks(X), in_chunks(y, 1000))):
        given[1][4100, 1] = 2.0
        with pytest.raises(ValueError, match=r"y has 2 columns and the value 2\.0: each column"):
            XGBClassifierLite().fit(*given)


@pytest.mark.usefixtures("cluster")
def test_an_error_names_the_target_that_has_no_percentage():
    y = with_value(Y, 4100, 0.0)
    for given in ((X, y), (in_chunks(X), in_chunks(y, 3000))):
        with pytest.raises(ValueError, match="divides by the targets") as caught:
            XGBRegressorLite(objective="reg:mape").fit(*given)
        assert "4100" in str(caught.value)


CODES = (Y > 0) * 1
WORDS = np.array(["no", "yes"], object)[CODES]
TUPLES = np.empty(N_ROWS, object)
TUPLES[:] = [(code,) for code in CODES]
FAULTS_OF_CLASSES = {
    "contains NaN": with_value(CODES * 1.0, 4100, np.nan),
    "y has no value in 1 row": with_value(WORDS, 4100, None),
    "continuous.*use XGBRegressorLite": with_value(CODES * 1.0, 4100, 0.5),
    "^y holds Python objects of type int, str": with_value(WORDS, 4100, 1),
    # partitions of different kinds: what they are together, one place has to say
    "y holds Python objects of type int, str": with_value(WORDS, slice(2000), 1),
    "y holds Python objects of type tuple": TUPLES,
}


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("message", FAULTS_OF_CLASSES)
def test_errors_of_classes(message):
    y = FAULTS_OF_CLASSES[message]
    for given in ((X, y), (in_chunks(X), in_chunks(y, 1000))):
        with pytest.raises((ValueError, TypeError), match=message):
            XGBClassifierLite().fit(*given)
