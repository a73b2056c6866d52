"""The search of `benchmarks/tuned.py`: what it sees, how it counts rounds; and its table."""

import numpy as np
import pytest

from benchmarks import datasets, peers, tuned

TINY = datasets.load("binary-2000x5").cut(150, 60)


def test_a_search_sees_no_test_row_and_its_parameters_give_the_model_that_is_judged():
    blind = TINY._replace(X_test=None, y_test=None)
    parameters, facts = tuned.search(tuned.OURS, blind, seed=0, n_trials=8, most_rounds=20)
    space = tuned.SPACES[tuned.OURS]
    assert set(parameters) == {*space, "n_estimators"} - set(tuned.WITH_CATEGORIES)
    assert 1 <= parameters["n_estimators"] <= 25  # five quarters of 20
    record = tuned.fit_and_judge("ours-tuned", TINY, seed=0, n_trials=8, most_rounds=20)
    assert record["parameters"] == parameters
    assert {name: record[name] for name in facts} == facts
    model = peers.make_estimator(tuned.OURS, None, "binary", 1, 0, **parameters)
    prediction = model.fit(TINY.X_train, TINY.y_train).predict_proba(TINY.X_test)
    assert record["test_loss"] == peers.held_out_loss("binary", TINY.y_test, prediction)


@pytest.mark.parametrize("library", tuned.SPACES)
def test_the_fit_of_the_best_round_is_the_model_that_stopped_there(library):
    pytest.importorskip(peers.LIBRARIES[library].module)
    X, y, held_out = TINY.X_train[:100], TINY.y_train[:100], TINY.X_train[100:]
    changes = tuned._fixed(library, "binary") | {"n_estimators": 200, "learning_rate": 0.3}
    with peers.quiet(library, 1):
        stopped = tuned._make(library, TINY, 0, **changes, early_stopping_rounds=5)
        stopped.fit(X, y, eval_set=[(held_out, TINY.y_train[100:])])
        changes["n_estimators"] = tuned._best_round(library, stopped)
        assert changes["n_estimators"] < 200
        plain = tuned._make(library, TINY, 0, **changes).fit(X, y)
        np.testing.assert_array_equal(
            plain.predict_proba(held_out), stopped.predict_proba(held_out)
        )


def test_the_table_compares_with_the_preset_on_shared_splits_and_the_latest_record_counts():
    fact = {"n_train": 10, "n_features": 2, "commit": "c", "versions": {}}
    spent = dict(zip(tuned.MODELS, (2.0, 1.0, 1.0, 40.0, 20.0, 200.0), strict=True))
    figures = [("a", 0, "preset", 99.0)]  # measured again below
    figures += [("a", 0, model, 2.0) for model in tuned.MODELS]
    figures += [("b", 0, model, 2.0) for model in tuned.MODELS]
    figures += [("a", 0, "preset", 1.0), ("b", 0, "preset", 5.0), ("b", 0, "catboost", 1.0)]
    figures += [("b", 1, "preset", 77.0), ("b", 1, "catboost", 1.0)]  # a split that is not finished
    records = [
        {**fact, "dataset": name, "seed": seed, "model": model, "test_loss": loss}
        | {"cpu_seconds": spent[model], "parameters": {"max_depth": 3, "depth": 5}}
        for name, seed, model, loss in figures
    ]
    text = "\n".join(tuned.write_table(records))
    assert "- 1.118 times that of `lightgbm-tuned`, 0.500 to 2.500, lower on 1 of 2 data" in text
    assert "for 1/100 of the processor seconds" in text
    assert "| a | 0.5000 | 0.5000 | 0.5000 | 0.5000 | 0.5000 | 0.5000 |" in text
    assert "| b | 2.5000 | 5.0000 | 2.5000 | 2.5000 | 2.5000 | 5.0000 |" in text
    assert "| geometric mean | 1.1180 | 1.5811 | 1.1180 | 1.1180 | 1.1180 | 1.5811 |" in text
    assert "| its seconds / preset's | 0.5 | 0.5 | 20.0 | 10.0 | 100.0 |  |" in text
    assert "better: `max_depth=3` of ours-tuned on a; `max_depth=3` of ours-tuned on b." in text
    untuned = [record for record in records if "tuned" not in record["model"]]
    assert "| a | 0.5000 | 0.5000 |  |  |  | 0.5000 |" in tuned.write_table(untuned)
