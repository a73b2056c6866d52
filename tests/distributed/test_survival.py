"""Survival times on machines that each have some of the rows at risk."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from sklboost import XGBSurvivalLite, survival_targets
from sklboost.estimators.fit import preset
from tests.distributed.machines import ThreadGroup, assert_same_model
from tests.distributed.test_fits import assert_same_fit
from tests.distributed.test_machines import N_ROWS, X, Y, fit_both

RANDOM = np.random.default_rng(0)
TIME = (10 * RANDOM.exponential(np.exp(-Y / 5))).round(2) + 0.01  # many are tied
CENSORED = RANDOM.exponential(5.0, N_ROWS).round(2) + 0.01
GIVEN = dict(event=TIME <= CENSORED, time=np.minimum(TIME, CENSORED))
STRATA = {
    "none": None,
    "anywhere": RANDOM.integers(3, size=N_ROWS),
    "whole blocks": np.arange(N_ROWS) // 4096,
    "some in several blocks": np.arange(N_ROWS) // 1500,
}
TOWNS = STRATA["anywhere"].astype(str)


def booster(**settings):
    return XGBSurvivalLite(**{"n_estimators": 4, "random_state": 0, **settings})


def assert_same_hazards(one, other):
    for name in ("strata", "times", "hazards", "centres"):
        ours, theirs = (getattr(model._fitted.targets, name) for model in (one, other))
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("ties", ["breslow", "efron"])
@pytest.mark.parametrize("layout", STRATA)
def test_any_number_of_machines_grows_the_same_trees(monkeypatch, layout, ties):
    model, given = booster(ties=ties, subsample=0.8), {}
    entry = None if layout == "none" else GIVEN["time"] / 2 - 1.0
    if layout in ("none", "some in several blocks"):
        given["sample_weight"] = RANDOM.exponential(size=N_ROWS)
    if layout == "anywhere":
        given["base_margin"] = RANDOM.normal(size=N_ROWS)
    y = survival_targets(**GIVEN, strata=STRATA[layout], entry_time=entry)
    every_number = ties == "efron" and layout in ("none", "anywhere")
    for n_machines in (1, 2, 3, 5) if every_number else (3,):
        one, other, rounds = fit_both(monkeypatch, model, X, y, ThreadGroup(n_machines, 2), **given)
        assert len(one.model_.nodes) > 40
        assert_same_model(one, other)
        assert_same_hazards(one, other)
        if layout in ("none", "anywhere") and n_machines > 1:
            # in each round the raw scores of all rows, to each of the other machines with rows
            n_others = other.fit_report_.n_threads // 2 - 1
            assert rounds.traffic["scores"][1] == 4 * n_others * 8 * N_ROWS
        if layout == "whole blocks":
            assert rounds.traffic["scores"][1] == 0


def test_lost_machines_are_replaced(monkeypatch):
    y = survival_targets(**GIVEN, strata=TOWNS)
    model, group = booster(n_estimators=6, ties="efron"), ThreadGroup(4, 1, [1, 2, 4])
    every_round = dict(X_val=X[:900], y_val=y[:900], sample_weight=RANDOM.exponential(size=N_ROWS))
    one, other, _ = fit_both(monkeypatch, model, X, y, group, **every_round)
    assert len(group.names) < 4
    assert_same_model(one, other)
    assert_same_hazards(one, other)
    assert one.evals_result_ == other.evals_result_


# --- on a cluster


def test_frames_that_stop_early(cluster):
    table = pd.DataFrame(X, columns=list("abcdef")).assign(**GIVEN, town=TOWNS, weight=1.0)
    table.loc[::7, "weight"] = 0.0
    table.loc[::5, "weight"] = 2.5
    train, valid = table[:15_000], table[15_000:]
    model = booster(n_estimators=60, early_stopping_rounds=2, learning_rate=0.5, ties="efron")

    def fitted(train, valid, **more):
        features, times = list("abcdef"), ["event", "time"]
        own = dict(sample_weight=train["weight"], **more)
        if valid is not None:
            own |= dict(X_val=valid[features], y_val=valid[times])
        return clone(model).fit(train[features], train[times], **own)

    there = dd.from_pandas(train, npartitions=3), dd.from_pandas(valid, npartitions=2)
    one, other = fitted(train, valid), fitted(*there)
    assert_same_fit(one, other, table[list("abcdef")])
    assert_same_hazards(one, other)
    assert other.fit_report_.traffic["scores"] > (0, 0)
    # rows are held out, with strata
    model.set_params(refit=True)
    one, other = (
        fitted(train, None, strata=train["town"]),
        fitted(there[0], None, strata=there[0]["town"]),
    )
    assert_same_fit(one, other, table[list("abcdef")])
    assert_same_hazards(one, other)


def test_a_preset_chooses_what_it_does_on_one_machine(cluster, monkeypatch):
    monkeypatch.setattr(preset, "_MOST_COMPARED", 2_000)
    monkeypatch.setattr(preset, "_MOST_ROUNDS", 5)
    one = XGBSurvivalLite(preset="auto", max_depth=3, extra_trees=False)
    y = survival_targets(**GIVEN)
    other = clone(one).fit(da.from_array(X, chunks=(10_000, 6)), y)
    one.fit(X, y)
    assert other.chosen_params_ == one.chosen_params_
    assert_same_fit(one, other, X)


def test_a_model_that_is_continued(cluster):
    y = survival_targets(**GIVEN)
    first = booster().fit(X, y)
    one = booster().fit(X, y, init_model=first)
    other = booster().fit(da.from_array(X, chunks=(10_000, 6)), y, init_model=first)
    assert_same_fit(one, other, X)
