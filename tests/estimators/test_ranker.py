"""The ranker as users have it."""

import io
import pickle

import dask.dataframe as dd
import numpy as np
import onnxruntime
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
import xgboost
from numpy.testing import assert_allclose, assert_array_equal
from skl2onnx import to_onnx
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sklboost.onnx  # noqa: F401, registers converters
from sklboost import (
    XGBRankerLite,
    XGBRegressorLite,
    bin_features,
    load_model,
)

OBJECTIVES = ("rank:ndcg", "rank:map", "rank:pairwise", "rank:xendcg", "rank:yeti")


def make_data(seed=0, n_queries=40, n_labels=4):
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 30, n_queries)
    qid = np.repeat(np.arange(n_queries), sizes)
    X = random.normal(size=(len(qid), 5))
    signal = X[:, 0] + X[:, 1] * X[:, 2] + random.normal(scale=0.3, size=len(qid))
    return X, np.clip(np.round(signal + 1), 0, n_labels - 1), qid


X, Y, QID = make_data()
X_TEST, Y_TEST, QID_TEST = make_data(1, n_queries=200)


def ranker(**settings):
    return XGBRankerLite(**dict(n_estimators=10, max_depth=4, random_state=0) | settings)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_it_learns(objective):
    binary = objective == "rank:map"
    y, y_test = (Y > 1, Y_TEST > 1) if binary else (Y, Y_TEST)
    # the hessians of all neighbours add up to less than one per query
    regularisers = dict(min_child_weight=0.01, reg_lambda=0.1) if "yeti" in objective else {}
    model = ranker(objective=objective, **regularisers).fit(X, y, qid=QID)
    assert model.score(X_TEST, y_test, qid=QID_TEST) > 0.88
    shuffled = np.random.default_rng(0).permutation(len(y_test))
    assert model.score(X_TEST[shuffled], y_test[shuffled], qid=QID_TEST[shuffled]) > 0.88


def test_a_warning_if_there_is_no_split_since_a_query_counts_little():
    words = r"cover of min_child_weight=1, but that of all rows is [\d.]+; lower min_child_weight"
    few = QID < 6
    with pytest.warns(UserWarning, match=words):
        ranker(objective="rank:yeti").fit(X[few], Y[few], qid=QID[few])


@pytest.mark.parametrize("objective", sorted({*OBJECTIVES} - {"rank:xendcg"}))  # draws an order
def test_a_warning_if_no_documents_of_a_query_differ(objective):
    with pytest.warns(UserWarning, match="such as those of a query, are all equal, so there is no"):
        ranker(objective=objective).fit(X, QID % 2, qid=QID)


@pytest.mark.parametrize("objective", ["rank:ndcg", "rank:xendcg", "rank:yeti"])
def test_queries_in_any_order_and_form(objective):
    """What decides is which rows belong together, and their order within a query."""
    expected = ranker(objective=objective).fit(X, Y, qid=QID).predict(X_TEST)
    keys = np.random.default_rng(0).permutation(QID.max() + 1)
    mixed = np.argsort(keys[QID], kind="stable")  # whole queries elsewhere
    # rows anywhere, those of a query in their order
    slots = np.random.default_rng(1).permutation(len(Y))
    for query in range(QID.max() + 1):
        slots[query == QID] = np.sort(slots[query == QID])
    between = np.argsort(slots)
    sizes = np.unique(QID, return_counts=True)[1]
    text = np.array([f"query {query}" for query in QID])
    for given in (
        dict(group=sizes),
        dict(group=sizes.tolist()),
        dict(group=sizes.astype(np.float32)),
        dict(group=sizes.astype(object)),
        dict(qid=text),
        dict(qid=text.astype(object)),
        dict(qid=pd.Series(QID, index=QID + 7)),
        dict(qid=(QID - 100) * 0.5),
    ):
        assert_array_equal(ranker(objective=objective).fit(X, Y, **given).predict(X_TEST), expected)
    expected = ranker().fit(X, Y, qid=QID).predict(X_TEST)
    for order in (mixed, between):
        model = ranker().fit(X[order], Y[order], qid=QID[order])
        assert_allclose(model.predict(X_TEST), expected, atol=1e-6)


def test_a_preset_does_not_repeat_documents():
    random = np.random.default_rng(2)
    qid, X = np.repeat(np.arange(60), 10), random.normal(size=(600, 4))
    y = np.clip(np.round(X[:, 0] + X[:, 1] * X[:, 2] + random.normal(size=600)), 0, 4)
    settings = dict(preset="auto", max_depth=3, colsample_bylevel=0.5)
    one, other = (
        XGBRankerLite(**settings).fit(X, y, qid=qid, sample_weight=weight).chosen_params_
        for weight in (2.0, 2.0 + 1e-9)
    )
    assert one == pytest.approx(other)


def test_weight_2_is_the_query_twice_and_0_is_none():
    weight = np.random.default_rng(0).integers(0, 3, QID.max() + 1)
    queries = np.repeat(np.arange(len(weight)), weight)
    parts = [np.flatnonzero(query == QID) for query in queries]
    rows, qid = np.concatenate(parts), np.repeat(np.arange(len(parts)), [len(p) for p in parts])
    expected = ranker().fit(X[rows], Y[rows], qid=qid).predict(X_TEST)
    for given in (weight, weight[QID]):
        model = ranker().fit(X, Y, given, qid=QID)
        assert_allclose(model.predict(X_TEST), expected, rtol=1e-7, atol=1e-7)
        assert_allclose(
            model.score(X, Y, given, qid=QID), model.score(X[rows], Y[rows], qid=qid), rtol=1e-12
        )


def test_weight_0_is_no_query_where_rows_are_drawn():
    weight = np.where(np.random.default_rng(0).random(QID.max() + 1) < 0.5, 0.0, 1.7)
    rows = weight[QID] > 0
    models = [
        ranker(subsample=0.5).fit(X, Y, weight, qid=QID),
        ranker(subsample=0.5).fit(X[rows], Y[rows], weight[weight > 0], qid=QID[rows]),
    ]
    assert_array_equal(*(model.predict(X_TEST) for model in models))


def test_validation_rows():
    given = dict(X_val=X_TEST, y_val=Y_TEST, qid_val=QID_TEST)
    metrics = ["ndcg", "ndcg@5", "ndcg@5-", "mrr", "pre@3"]
    y, given["y_val"] = (Y > 1) * 1, (Y_TEST > 1) * 1
    model = ranker(eval_metric=metrics, n_estimators=3).fit(X, y, qid=QID, **given)
    log = model.evals_result_["validation_0"]
    assert list(log) == metrics
    assert log["ndcg"][-1] == model.score(X_TEST, given["y_val"], qid=QID_TEST)
    sizes = np.unique(QID_TEST, return_counts=True)[1]
    pair = (X_TEST, given["y_val"])
    for other in (dict(eval_qid=[QID_TEST]), dict(eval_group=[sizes])):
        other = ranker(eval_metric=metrics, n_estimators=3).fit(
            X, y, qid=QID, eval_set=[pair], **other
        )
        assert other.evals_result_["validation_0"] == log
    weight = np.arange(1.0, len(sizes) + 1.0)
    model = ranker(n_estimators=3).fit(X, y, qid=QID, **given, sample_weight_val=weight)
    log = model.evals_result_["validation_0"]
    assert list(log) == ["ndcg@32"]
    expected = model.score(X_TEST, given["y_val"], weight, qid=QID_TEST)
    assert_allclose(log["ndcg@32"][-1], expected, rtol=1e-12)  # no query has more than 32 documents


def test_early_stopping_holds_out_whole_queries():
    seen = []

    def function(y_true, y_pred):
        seen.append(y_true)
        return float(np.mean(y_true))

    model = ranker(n_estimators=50, early_stopping_rounds=3, eval_metric=[function, "ndcg@10"])
    model.fit(X, Y, qid=QID)
    assert model.best_iteration_ < 49
    assert model.best_score_ == max(model.evals_result_["validation_0"]["ndcg@10"])
    n_held_out = model.fit_report_.n_validation_samples
    sizes = np.unique(QID, return_counts=True)[1]
    assert n_held_out == len(seen[0])
    sums = {0}
    for size in sizes:
        sums |= {total + size for total in sums}
    assert n_held_out in sums
    again = ranker(n_estimators=50, early_stopping_rounds=3, refit=True).fit(X, Y, qid=QID)
    assert again.fit_report_.n_samples == len(X)
    # queries of validation rows are others, whatever they are called
    given = dict(X_val=X_TEST, y_val=Y_TEST, qid_val=QID_TEST)
    own = ranker(n_estimators=3, early_stopping_rounds=3, refit=True).fit(X, Y, qid=QID, **given)
    both = np.vstack([X, X_TEST]), np.r_[Y, Y_TEST], np.r_[QID, QID_TEST + 1000]
    rounds = own.best_iteration_ + 1
    expected = ranker(n_estimators=rounds).fit(*both[:2], qid=both[2])
    assert_allclose(own.predict(X), expected.predict(X), rtol=1e-6, atol=1e-6)


def test_models_are_kept():
    model = ranker().fit(X, Y, qid=QID)
    expected = model.predict(X_TEST)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X_TEST), expected)
    assert repr(clone(model).get_params()) == repr(model.get_params())
    for format_, raw_format in (("sklboost", "json"), ("xgboost", "ubj")):
        file = io.BytesIO()
        model.save_model(file, format=format_, raw_format=raw_format)
        loaded = load_model(file.getvalue())
        assert type(loaded) is XGBRankerLite
        assert repr(loaded.get_params()) == repr(model.get_params())
        assert_array_equal(loaded.predict(X_TEST), expected)
    with pytest.raises(TypeError, match=r"^the model file holds a fitted XGBRankerLite, no XGBReg"):
        XGBRegressorLite.load_model(file.getvalue())
    warm = ranker(n_estimators=5, warm_start=True).fit(X, Y, qid=QID)
    warm.set_params(n_estimators=10).fit(X, Y, qid=QID)
    assert_allclose(warm.predict(X_TEST), expected, atol=1e-6)


@pytest.mark.parametrize(
    "settings",
    [
        dict(linear_tree=True),
        dict(sampling_method="gradient_based", subsample=0.5, base_score=0.5),
    ],
)
def test_options_of_trees(settings):
    model = ranker(**settings).fit(X, Y, qid=QID)
    assert model.score(X_TEST, Y_TEST, qid=QID_TEST) > 0.8


def test_tools_of_scikit_learn():
    model = ranker(n_estimators=3)
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(model, {"max_depth": [1, 4]}, cv=GroupKFold(3))
        search.fit(X, Y, qid=QID, groups=QID)
        assert search.best_params_["max_depth"] == 4
        given = dict(qid=QID, groups=QID)
        scores = cross_validate(model, X, Y, cv=GroupKFold(3), params=given)["test_score"]
        folds = GroupKFold(3).split(X, Y, QID)
        for score, (train, test) in zip(scores, folds, strict=True):
            own = clone(model).fit(X[train], Y[train], qid=QID[train])
            assert score == own.score(X[test], Y[test], qid=QID[test])
        request = XGBRankerLite().set_fit_request(qid=True)
        pipeline = make_pipeline(StandardScaler(), request)
        assert 0.8 < pipeline.fit(X, Y, qid=QID).score(X, Y, qid=QID) <= 1.0


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_a_column_qid_is_the_queries_as_in_xgboost(library):
    plain = pd.DataFrame(X, columns=[*"abcde"])
    frame = plain.assign(qid=QID)[["a", "qid", "b", "c", "d", "e"]]
    if library == "pandas":  # as there
        xgboost.XGBRanker(n_estimators=1).fit(frame, Y).predict(frame)
    else:
        convert = pl.from_pandas if library == "polars" else pa.Table.from_pandas
        frame = convert(frame)
    model = ranker().fit(frame, Y, eval_set=[(frame, Y)])
    expected = ranker().fit(plain, Y, qid=QID, eval_set=[(plain, Y)], eval_qid=[QID])
    assert model.feature_names_in_.tolist() == [*"abcde"]
    assert model.evals_result_ == expected.evals_result_
    assert_array_equal(model.predict(frame), expected.predict(plain))
    assert_array_equal(model.predict(plain), expected.predict(plain))
    assert_array_equal(model.shap_values(frame), expected.shap_values(plain))
    assert model.score(frame, Y) == expected.score(plain, Y, qid=QID)
    for more in (dict(qid=QID), dict(group=[len(Y)])):
        with pytest.raises(ValueError, match=r"X has a column 'qid', .* given: leave out "):
            model.fit(frame, Y, **more)
    if library == "pandas":
        scores = cross_val_score(model, frame, Y, groups=QID, cv=GroupKFold(3))
        assert scores.min() > 0.8
        lazy = dd.from_pandas(frame, npartitions=2)
        assert_array_equal(model.predict(lazy).compute(), model.predict(frame))
        assert model.score(lazy, Y) == model.score(frame, Y)


def test_scikit_learn_without_routing_says_what_to_switch_on():
    with pytest.warns(
        UserWarning, match=r"(?s)Scoring failed.*In cross_val_score, .*set_config\(enable_"
    ):
        cross_val_score(ranker(), X, Y, params={"qid": QID}, cv=2)


def test_queries_of_validation_rows_are_no_matter_of_routing():
    for given in (dict(X_val=X, y_val=Y), dict(eval_set=[(X, Y)]), dict(group=[len(Y)])):
        with pytest.raises(ValueError, match="a ranker needs one of them") as caught:
            ranker().fit(X, Y, qid=QID, **given)
        assert "cross_val_score" not in str(caught.value)


def test_a_column_of_relevances_warns_as_elsewhere():
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        model = ranker().fit(X, Y[:, np.newaxis], qid=QID)
    assert_array_equal(model.predict(X_TEST), ranker().fit(X, Y, qid=QID).predict(X_TEST))


TWICE = pd.DataFrame(np.column_stack([X[:, 0], QID, QID]), columns=["a", "qid", "qid"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(qid=None), "neither is given of qid and group: a ranker needs one of them"),
        (dict(group=[1]), "both are given of qid and group"),
        (dict(qid=QID[:-1]), r"qid has shape \(\d+,\): it must be 1-D, one for each of the"),
        (dict(qid=None, group=[3, 4]), "group has 2 numbers, and their sum is 7: they must be"),
        (dict(qid=None, group=[]), "^group has 0 numbers, and their sum is 0: they must be"),
        (dict(qid=None, group=[[3, 4]]), r"^group has shape \(1, 2\): it must be 1-D, the number"),
        (dict(qid=None, X=TWICE), "^X has several columns 'qid': keep the one with the queries"),
        (
            dict(qid=None, group=np.r_[1.5, np.ones(999)]),
            r"group has 1000 .*group\[0\] is 1.5: they",
        ),
        (
            dict(qid=np.where(QID == 3, np.nan, QID)),
            r"qid has no value in \d+ row\(s\), .*: every row needs the label of its query",
        ),
        (dict(qid=pd.Series([[query] for query in QID])), "qid has labels that are none: unhash"),
        (dict(qid=np.where(QID == 3, None, QID)), "qid has no value in .* the label of its query"),
        (dict(y=np.column_stack([Y, Y])), r"y has shape \(\d+, 2\): it must be 1-D, one relevance"),
        (dict(y=Y + 0.5), r"y\[0\]=\d.5: objective='rank:ndcg' needs whole numbers from 0 to 31"),
        (dict(y=Y[:-1]), "qid has shape"),
        (
            dict(sample_weight=np.ones(3)),
            r"sample_weight has shape \(3,\): .* one weight for",
        ),
        (dict(sample_weight=np.arange(len(Y))), "all rows of a query have the same weight"),
        (dict(sample_weight=np.where(QID == 0, -1.0, 1.0)), "weights must be >= 0"),
        (dict(sample_weight=0.0), "zero for every row"),
        (dict(X_val=X, y_val=Y), "neither is given of qid_val and group_val"),
        (dict(qid_val=QID), "qid_val is given without X_val and y_val"),
        (dict(eval_set=[(X, Y)]), r"neither is given of eval_qid\[0\] and eval_group\[0\]"),
        (dict(eval_set=[(X, Y)], eval_qid=QID), "eval_qid must be a list with one entry"),
        (dict(eval_qid=[QID]), "eval_qid is given without eval_set"),
        (dict(X_val=X, y_val=Y + 40, qid_val=QID), r"y of X_val\[0\]=\d+: objective"),
    ],
)
def test_errors_of_fit(change, words):
    arguments = dict(X=X, y=Y, qid=QID) | change
    with pytest.raises(ValueError, match=words):
        ranker().fit(arguments.pop("X"), arguments.pop("y"), **arguments)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (dict(objective="reg:squarederror"), "is an objective for regression, not for rankings"),
        (dict(objective=lambda y, score: (score - y, y + 1.0)), "it must be None or a name: 'ra"),
        (dict(objective="rank:mrr"), "is for rankings, but XGBRankerLite does not have it"),
        (dict(lambdarank_pair_method="all"), "it must be one of 'topk', 'mean'"),
        (dict(lambdarank_num_pair_per_sample=0), "it must be None or an integer >= 1"),
        (dict(yeti_mode="dcg"), "it must be one of 'ndcg', 'map', 'mrr', 'classic'"),
        (dict(yeti_permutations=0), "it must be an integer >= 1"),
        (dict(yeti_decay=1.0), "it must be a number >= 0 and < 1"),
        (dict(lambdarank_bias_norm=-1), "it must be a finite number >= 0"),
        (dict(lambdarank_unbiased="yes"), "it must be True or False"),
        (dict(eval_metric="map"), "map of a relevance of"),
        (dict(early_stopping_rounds=2, validation_split="time"), "validation_split"),
    ],
)
def test_errors_of_parameters(settings, words):
    given = dict(X_val=X, y_val=Y, qid_val=QID) if "eval_metric" in settings else {}
    with pytest.raises(ValueError, match=words):
        ranker(**settings).fit(X, Y, qid=QID, **given)


@pytest.mark.filterwarnings("error")
def test_lazy_frames_are_refused_before_they_are_asked_for_columns():
    lazy = pl.DataFrame(X).with_columns(qid=QID).lazy()
    model = ranker().fit(X, Y, qid=QID)
    for act in (
        lambda: ranker().fit(lazy, Y),
        lambda: ranker().fit(lazy, Y, qid=QID),
        lambda: model.predict(lazy),
        lambda: model.score(lazy, Y),
    ):
        with pytest.raises(TypeError, match=r"which has no values yet: pass X.collect\(\)"):
            act()


def test_errors_of_one_query_and_of_scores():
    with pytest.raises(ValueError, match="pass X_val and y_val"):
        ranker(early_stopping_rounds=2).fit(X, Y, group=[len(Y)])
    model = ranker().fit(X, Y, group=[len(Y)])
    assert model.score(X, Y, group=[len(Y)]) > 0.9
    for weight, words in ((0.0, "zero for every row"), (-1.0, "weights must be >= 0")):
        with pytest.raises(ValueError, match=words):
            model.score(X, Y, qid=QID, sample_weight=np.full(QID[-1] + 1, weight))


def test_what_has_no_argument_for_queries():
    with pytest.raises(NotImplementedError, match="has no argument for queries"):
        ranker().validation_importances(X, Y, X_val=X, y_val=Y)
    with pytest.raises(ValueError, match="this method has no argument for them"):
        ranker().fit(X, Y, qid=QID).cost_complexity_pruning_path(X, Y)
    with pytest.raises(ValueError, match="this method has no argument for them"):
        ranker().fit(X, Y, qid=QID).explain_split(0, 0, X, Y)


def test_bins_and_the_preset():
    expected = ranker().fit(X, Y, qid=QID).predict(X)
    B = bin_features(X)
    assert_array_equal(ranker().fit(B, Y, qid=QID).predict(B), expected)
    few = QID < 12
    model = ranker(preset="auto", n_estimators=4).fit(X[few], Y[few], qid=QID[few])
    assert set(model.chosen_params_) & {"min_child_weight", "learning_rate"}
    again = ranker(n_estimators=4).set_params(**model.chosen_params_, preset=None)
    assert_array_equal(again.fit(X[few], Y[few], qid=QID[few]).predict(X), model.predict(X))


def test_other_libraries_and_graphs():
    model = ranker().fit(X, Y, qid=QID)
    single = X_TEST.astype(np.float32)
    expected = model.predict(single)
    data = xgboost.DMatrix(single)
    assert_allclose(model.to_xgboost().predict(data, output_margin=True), expected, atol=1e-5)
    graph = to_onnx(model, single[:1])
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    found = session.run(None, {session.get_inputs()[0].name: single})[0]
    assert_allclose(found.ravel(), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("objective", "parameters"),
    [
        ("rank:ndcg", {}),
        ("rank:ndcg", dict(ndcg_exp_gain=False)),
        ("rank:map", dict(lambdarank_num_pair_per_sample=4)),
        (
            "rank:pairwise",
            dict(lambdarank_normalization=False, lambdarank_score_normalization=False),
        ),
    ],
)
def test_rounds_and_metrics_of_xgboost(objective, parameters):
    random = np.random.default_rng(0)
    X = random.integers(0, 20, (600, 3)).astype(float)
    qid = np.repeat(np.arange(20), 30)
    y = np.clip(X[:, 0] // 5 - X[:, 1] // 8 + random.integers(0, 2, 600), 0, 3)
    y = np.minimum(y, 1) if objective == "rank:map" else y
    metrics = ["ndcg@5", "ndcg@10-", "ndcg", *(["map@3", "pre@4"] if y.max() == 1 else [])]
    settings = dict(n_estimators=3, max_depth=3, learning_rate=0.3, min_child_weight=0.1)
    settings |= dict(objective=objective, eval_metric=metrics) | parameters
    theirs = xgboost.XGBRanker(tree_method="hist", base_score=0.0, n_jobs=1, **settings)
    theirs.fit(X, y, qid=qid, eval_set=[(X, y)], eval_qid=[qid], verbose=False)
    ours = XGBRankerLite(**settings).fit(X, y, qid=qid, eval_set=[(X, y)], eval_qid=[qid])
    # where a document has no pair, splits to either side of it have the same gain
    assert np.quantile(np.abs(ours.predict(X) - theirs.predict(X)), 0.99) < 1e-5
    for name, values in theirs.evals_result()["validation_0"].items():
        assert_allclose(ours.evals_result_["validation_0"][name], values, atol=1e-3)
