"""The page unfolds what explain_split says, word for word."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest

from sklboost import XGBClassifierLite, XGBRegressorLite
from tests.estimators.page.examples import node_texts


def expected_texts(model):
    """Return the same from Python."""
    texts = []
    for tree in range(model.model_.n_trees):
        for node in itertools.count():
            try:
                text = str(model.explain_split(tree, node))
            except ValueError:  # there is no such node
                break
            texts.append([line.strip() for line in text.splitlines() if line])
    return texts


def plain(texts):
    """Leave out `_`: what comes after one stands lower on the page."""
    return [[line.replace("_", "") for line in lines] for lines in texts]


MODELS = {
    "keep_pruned": dict(gamma=2.0, keep_pruned=True),
    "full": dict(pruning="full", gamma=0.5, reg_lambda=0.0, keep_pruned=True, max_depth=2),
    "constrained": dict(
        *[dict(reg_alpha=0.3, max_delta_step=0.05, path_smooth=2.0)],
        monotone_constraints={0: 1, 2: -1},
    ),
    "dart": dict(booster="dart", rate_drop=0.5, random_state=0),
    "median": dict(objective="reg:absoluteerror"),
    "cost_complexity": dict(ccp_alpha=0.01, keep_pruned=True),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_node_says_what_explain_split_says(opened, regression, name):
    X, y = regression
    settings = dict(n_estimators=3, max_depth=3) | MODELS[name]
    model = XGBRegressorLite(**settings).fit(X[:, :5], y / 50)
    expected = plain(expected_texts(model))
    assert len(expected) > 6
    assert plain(node_texts(opened(model))) == expected


def test_times_and_large_integers_on_the_page(opened):
    rows = np.arange(300)
    frame = pd.DataFrame(
        {
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rows, "D"),
            "id": 10**17 + rows % 50,
        }
    )
    y = np.sin(rows / 30) + (rows % 50 >= 10)
    model = XGBRegressorLite(n_estimators=2, max_depth=3).fit(frame, y)
    page = opened(model, frame[:3])
    assert plain(node_texts(page)) == plain(expected_texts(model))
    drawn = page.texts(".node text")
    assert any(re.fullmatch(r"day < 2020-\d\d-\d\d", text) for text in drawn)
    assert any(re.fullmatch(r"id < 1000000000000000\d\d", text) for text in drawn)
    values = page.texts("#rows td")
    assert "2020-01-01" in values
    assert "100000000000000000" in values


@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
def test_derivations_of_several_outputs(opened, flowers, strategy):
    model, X, y = flowers
    model = XGBClassifierLite(n_estimators=2, max_depth=2, multi_strategy=strategy).fit(X, y)
    assert plain(node_texts(opened(model))) == plain(expected_texts(model))
