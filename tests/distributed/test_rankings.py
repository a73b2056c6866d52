"""Rankings on machines that each have some of the rows, and only a part of some queries."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from sklboost import XGBRankerLite
from sklboost.estimators.fit import preset
from tests.distributed.machines import ThreadGroup, assert_same_model
from tests.distributed.test_fits import assert_same_fit
from tests.distributed.test_machines import N_ROWS, X, Y, fit_both

RANDOM = np.random.default_rng(0)
RELEVANCE = np.digitize(Y, np.quantile(Y, [0.5, 0.75, 0.9]))
WEIGHT = RANDOM.integers(1, 4, size=N_ROWS // 50)  # of the short queries
QUERIES = {
    "short": np.arange(N_ROWS) // 50,
    "longer than a block": np.arange(N_ROWS) // 9_000,
    "of any length": np.sort(RANDOM.geometric(0.01, N_ROWS)),
    "anywhere": RANDOM.integers(400, size=N_ROWS),
    "whole blocks": np.arange(N_ROWS) // 4096,
}
OBJECTIVES = {
    "rank:ndcg": {},
    "rank:pairwise": dict(lambdarank_pair_method="mean", lambdarank_num_pair_per_sample=3),
    "rank:map": dict(lambdarank_normalization=False),
    "rank:xendcg": dict(subsample=0.7),
    "rank:yeti": dict(yeti_permutations=2),
}


def ranker(**settings):
    return XGBRankerLite(
        **{"n_estimators": 3, "random_state": 0, "min_child_weight": 0, **settings}
    )


# All layouts with one objective; the others with queries that are anywhere, and one layout more.
PAIRS = [("rank:ndcg", layout) for layout in QUERIES]
PAIRS += [(objective, "anywhere") for objective in OBJECTIVES if objective != "rank:ndcg"]
PAIRS += zip(list(OBJECTIVES)[1:], (of for of in QUERIES if of != "anywhere"), strict=True)


@pytest.mark.parametrize(("objective", "layout"), PAIRS)
def test_any_number_of_machines_grows_the_same_trees(monkeypatch, objective, layout):
    model = ranker(objective=objective, **OBJECTIVES[objective])
    y, given = np.minimum(RELEVANCE, 1 if objective == "rank:map" else 3), dict(qid=QUERIES[layout])
    if layout == "short":
        given["sample_weight"] = WEIGHT
    is_first = objective == "rank:ndcg"  # the numbers change who has which rows, for all objectives
    for n_machines in (1, 2, 3, 5) if is_first and layout in ("short", "anywhere") else (3,):
        group = ThreadGroup(n_machines, 2)
        one, other, _ = fit_both(monkeypatch, model, X, y, group, **given)
        assert len(one.model_.nodes) > 3
        assert_same_model(one, other)


def test_raw_scores_are_exchanged_of_queries_that_several_machines_have(monkeypatch):
    sent = {}
    for layout in ("short", "whole blocks", "anywhere"):
        given = dict(qid=QUERIES[layout])
        _, _, rounds = fit_both(monkeypatch, ranker(), X, RELEVANCE, ThreadGroup(2), **given)
        sent[layout] = rounds.traffic["scores"]
    n_messages = 2 * 3  # of two machines, in three rounds
    assert sent["whole blocks"] == (n_messages, 0)
    assert sent["anywhere"] == (n_messages, 3 * 8 * N_ROWS)
    assert sent["short"][0] == n_messages
    # some of the 4 queries that lie in two blocks
    assert sent["short"][1] in [3 * 8 * 50 * n_queries for n_queries in (1, 2, 3, 4)]


def test_lost_machines_are_replaced(monkeypatch):
    every_round = dict(X_val=X[:100], y_val=RELEVANCE[:100], qid_val=np.zeros(100))
    for layout in ("longer than a block", "anywhere"):
        model, group = ranker(n_estimators=6, objective="rank:yeti"), ThreadGroup(4, 1, [1, 2, 4])
        given = dict(qid=QUERIES[layout], **every_round)
        one, other, _ = fit_both(monkeypatch, model, X, RELEVANCE, group, **given)
        assert len(group.names) < 4
        assert_same_model(one, other)
        assert one.evals_result_ == other.evals_result_


# --- on a cluster


def chunked(values, chunks=(5070, N_ROWS - 5070)):
    return da.from_array(values, chunks=(chunks, *values.shape[1:]))


def unevenly(values):
    return chunked(values, (5000, 0, 70, N_ROWS - 5070))


def test_arrays(cluster):
    """Of an objective; of the others test_columns.py."""
    model = ranker(objective="rank:xendcg", subsample=0.7)
    y, qid = np.minimum(RELEVANCE, 1), QUERIES["of any length"].astype(str)
    weight = np.unique(qid, return_inverse=True)[1] % 3 / 3
    one = model.fit(X, y, weight, qid=qid)
    y, weight, qid = map(unevenly, (y, weight, qid))
    other = clone(model).fit(unevenly(X), y, weight, qid=qid)
    assert_same_fit(one, other, X)
    assert other.fit_report_.traffic["scores"] > (0, 0)


def test_frames_whose_queries_are_a_column(cluster):
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(y=RELEVANCE, qid=QUERIES["short"])
    features, model = [*"abcdef", "qid"], ranker(n_estimators=60, early_stopping_rounds=2)
    train, valid = frame[:15_000], frame[15_000:]
    one = model.fit(train[features], train["y"], X_val=valid[features], y_val=valid["y"])
    there, later = dd.from_pandas(train, npartitions=3), dd.from_pandas(valid, npartitions=2)
    other = clone(model)
    other.fit(there[features], there["y"], X_val=later[features], y_val=later["y"])
    assert_same_fit(one, other, frame[features])
    assert list(other.feature_names_in_) == list("abcdef")
    sizes = np.full(300, 50)
    third = clone(model).set_params(refit=True).fit(train[[*"abcdef"]], train["y"], group=sizes)
    fourth = clone(third)  # queries are held out
    fourth.fit(there[[*"abcdef"]], there["y"], group=da.from_array(sizes, chunks=70))
    assert_same_fit(third, fourth, frame[[*"abcdef"]])


def test_a_preset_chooses_what_it_does_on_one_machine(cluster, monkeypatch):
    monkeypatch.setattr(preset, "_MOST_COMPARED", 2_000)
    monkeypatch.setattr(preset, "_MOST_ROUNDS", 5)
    one = XGBRankerLite(preset="auto", max_depth=3, extra_trees=False)
    other = clone(one)
    one.fit(X, RELEVANCE, qid=QUERIES["short"])
    other.fit(chunked(X), chunked(RELEVANCE), qid=chunked(QUERIES["short"]))
    assert other.chosen_params_ == one.chosen_params_
    assert_same_fit(one, other, X)


def test_what_fits_here_refuse_is_refused_there(cluster):
    there, y, qid = chunked(X), chunked(RELEVANCE), QUERIES["short"]
    with pytest.raises(ValueError, match="neither is given of qid and group"):
        ranker().fit(there, y)
    with pytest.raises(ValueError, match=r"relevances? of|needs relevances of 0 and 1"):
        ranker(objective="rank:map").fit(there, y, qid=qid)
    with pytest.raises(ValueError, match=r"qid has shape \(19999,\)"):
        ranker().fit(there, y, qid=da.from_array(qid[1:]))
    weight = np.where(np.arange(N_ROWS) == 75, 2.0, 1.0)
    with pytest.raises(ValueError, match=r"sample_weight\[75\]=2, but the first row"):
        ranker().fit(there, y, chunked(weight), qid=chunked(qid))
