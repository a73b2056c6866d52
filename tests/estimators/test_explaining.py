"""explain_split and explain_prediction of models of all kinds."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError

from sklboost import (
    UnknownCategoryWarning,
    XGBClassifierLite,
    XGBRegressorLite,
    XGBRFClassifierLite,
    bin_features,
)

N_ROWS = 300
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(N_ROWS, 4)).round(2)
X[RANDOM.random(X.shape) < 0.1] = np.nan
X[:, 3] = RANDOM.integers(0, 9, N_ROWS)
Y = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) ** 2 + 0.4 * (X[:, 3] % 3) + 3.0
Y += 0.2 * RANDOM.normal(size=N_ROWS)
CLASSES = np.array(["a", "b", "c"])[np.digitize(Y, [3.8, 4.6])]
TWO = np.column_stack([Y, np.where(np.arange(N_ROWS) % 7 == 0, np.nan, -Y)])
LABELS = np.column_stack([Y > 4, Y > 5, X[:, 3] > 4]).astype(int)


def squared_error(y_true, y_pred):
    return y_pred - y_true, np.ones_like(y_true)


# name: targets, settings
MODELS = {
    "plain": (Y, {}),
    "penalties": (Y, dict(reg_alpha=2.0, reg_lambda=3.0)),
    "short steps": (Y, dict(max_delta_step=0.2, reg_alpha=0.5)),
    "leaning on parents": (Y, dict(path_smooth=4.0)),
    "monotone": (Y, dict(monotone_constraints=[1, 1, 0, 0], path_smooth=1.0)),
    "categories": (Y, dict(categorical_features=[3])),
    "weakest links": (Y, dict(ccp_alpha=0.004)),
    "full": (Y, dict(pruning="full", grow_policy="lossguide", max_leaves=9)),
    "pre": (Y, dict(pruning="pre")),
    "two classes": (Y > 4, {}),
    "classes": (CLASSES, {}),
    "classes, one tree": (CLASSES, dict(multi_strategy="multi_output_tree")),
    "one against the rest": (CLASSES, dict(objective="multi:onevsrest")),
    "rare class": (Y > 6.5, dict(reg_lambda=0.0, min_child_weight=0.0)),
    "labels": (LABELS, {}),
    "hinge": (Y > 4, dict(objective="binary:hinge")),
    "calibrated": (Y > 4, dict(scale_pos_weight=3.0, calibrated_prior=True)),
    "targets": (TWO, {}),
    "targets, one tree": (TWO, dict(multi_strategy="multi_output_tree", path_smooth=2.0)),
    "median": (Y, dict(objective="reg:absoluteerror", gamma=3.0)),
    "median, nothing kept": (Y, dict(objective="reg:absoluteerror", keep_pruned=False)),
    "quantiles": (Y, dict(objective="reg:quantileerror", quantile_alpha=[0.9, 0.1, 0.5])),
    "huber": (Y, dict(objective="reg:huber")),
    "counts": (np.rint(Y), dict(objective="count:poisson")),
    "own loss": (Y, dict(objective=squared_error)),
    "dart": (Y, dict(booster="dart", rate_drop=0.5, random_state=0)),
    "sampled": (Y, dict(subsample=0.5, colsample_bynode=0.5, random_state=0)),
    "forest a round": (Y, dict(num_parallel_tree=2, subsample=0.8, random_state=0)),
    "linear leaves": (Y, dict(linear_tree=True)),
    "linear leaves of classes": (CLASSES, dict(linear_tree=True, max_depth=1)),
}
SMALL = dict(n_estimators=3, max_depth=3, learning_rate=0.5, gamma=0.2, min_child_weight=2.0)


def make(name, **changes):
    y, settings = MODELS[name]
    is_regression = np.asarray(y).dtype.kind == "f"
    estimator = XGBRegressorLite if is_regression else XGBClassifierLite
    return estimator(**(SMALL | dict(keep_pruned=True) | settings | changes)).fit(X, y), y


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    return request.param, *make(request.param)


@pytest.fixture(scope="module")
def explained(fitted):
    """Return all nodes of a model, (tree, node), with the derivation of each."""
    _, model, _ = fitted
    return {place: model.explain_split(*place) for place in all_nodes(model)}


def n_nodes(model, tree):
    trees = model.model_.unpruned or model.model_
    starts = trees.starts if model.model_.unpruned else trees.tree_starts
    return int(np.diff(starts)[tree])


def all_nodes(model):
    for tree in range(model.model_.n_trees):
        for node in range(n_nodes(model, tree)):
            yield tree, node


@pytest.mark.parametrize(
    ("values", "measure"),
    [
        (np.datetime64("2024-03-01") + 60 * np.arange(200).astype("m8[m]"), "in hours since 1970"),
        (90 * np.arange(200).astype("m8[s]"), "in seconds"),
        (2**60 + np.arange(200), "as its place, from 0, among the values of the training"),
    ],
    ids=["time", "span", "large integers"],
)
def test_lines_say_what_numbers_of_times_count(values, measure):
    X = pd.DataFrame({"x": values})
    model = XGBRegressorLite(n_estimators=1, max_depth=1, linear_tree=True)
    text = model.fit(X, np.arange(200.0)).explain_prediction(X[:1]).text
    assert re.search(r"x_0 is (x .*): l = ", text)[1] == f"x {measure}"


def test_steps_come_to_the_numbers_of_the_model(fitted, explained):
    name, model, _ = fitted
    n_splits = 0
    for (tree, node), derived in explained.items():
        assert "were in force" not in derived.text, (tree, node)  # the gain is that of its steps
        if tree == 0:  # the forms are made alike of all
            json.dumps(derived.as_dict(), allow_nan=False)
            assert derived.html.startswith("<div")
            assert "align*" in derived.latex
        start, n_kept = model.model_.tree_starts[tree], np.diff(model.model_.tree_starts)[tree]
        kept = model.model_.nodes[start + node] if node < n_kept else None
        if kept is not None and model.model_.outputs.shape[1] == 0:
            assert (derived.result("G"), derived.result("H")) == (kept.gradient, kept.cover)
        if "split at" in derived.title:
            n_splits += 1
            is_kept = kept is not None and kept.left >= 0
            assert ("pruned" in derived.title) != is_kept
            assert (re.search(r"\n  Kept[:,]", derived.text) is not None) == is_kept
            sides = [derived.result(symbol) for symbol in ("S_L", "S_R", "S")]
            gain = sides[0] + sides[1] - sides[2]
            assert_allclose(gain, derived.result("gain"), rtol=1e-6, atol=1e-9 * abs(sides[2]))
            if is_kept:
                assert kept.gain == derived.result("gain")
        elif kept is not None:
            own = [step for step in derived.steps if step.symbol.startswith("v")]
            values = model.model_.values[:, start + node]
            assert_allclose([step.result for step in own], values, rtol=1e-12)
            for step in own:
                rate, weight = step.values.values()
                assert_allclose(rate * weight, step.result, rtol=1e-12)
        # every step from the best output to the one that was used is there
        assert "within the bounds" not in derived.text or "monotone" in name
    assert n_splits > 3, name


def test_pruned_splits_are_found(fitted, explained):
    name, model, _ = fitted
    n_pruned = sum(
        "split at" in derived.title and "Pruned" in derived.text for derived in explained.values()
    )
    assert n_pruned == model.fit_report_.n_pruned_splits
    if name in ("plain", "weakest links", "full", "classes", "median"):
        assert n_pruned > 0


def test_rows_add_up_to_the_sums_of_the_training(fitted):
    name, model, y = fitted
    for tree, node in all_nodes(model):
        derived = model.explain_split(tree, node, X, y)
        assert f"of the {N_ROWS} rows given" in derived.text
        agrees = "These are the sums of the training" in derived.text
        if name == "dart":
            assert "which these were is not kept" in derived.text
        elif name in ("sampled", "forest a round"):
            assert node > 0 or not agrees
        else:
            assert agrees, (tree, node, derived.text)
    rows = [model.explain_split(0, node, X).text for node in range(n_nodes(model, 0))]
    assert "Pass y as well" in rows[0]
    counts = [int(text.split(" of the 300 rows")[0].split()[-1]) for text in rows]
    first = model.explain_split(0)
    left, right = (int(re.match(r"\d+", part)[0]) for part in first.text.split("to node ")[1:3])
    assert counts[0] == N_ROWS == counts[left] + counts[right]


def test_predictions_are_those_of_the_model(fitted):
    name, model, _ = fitted
    for row in (0, 1, 17, 100):
        x = X[row]
        derived = model.explain_prediction(x, full=True)
        raw_score = model._scored(X[row : row + 1])[1][:, 0]
        for output, score in enumerate(raw_score):
            suffix = f",{output}" if len(raw_score) > 1 else ""
            last = [
                step.result
                for step in derived.steps
                if step.symbol.startswith("F_")
                and step.symbol.endswith(suffix)
                and ("," in step.symbol) == bool(suffix)
            ][-1]
            assert_allclose(last, score, rtol=1e-12)
        if isinstance(model, XGBRegressorLite):
            expected = np.ravel(model.predict(X[row : row + 1]))
        else:
            expected = model.predict_proba(X[row : row + 1])[0]
            label = model.predict(X[row : row + 1])[0]
            assert name == "labels" or f"Predicted class: {label.item()!r}." in derived.text
        ends = [s.result for s in derived.steps if s.symbol[0] in "py" and s.symbol != "p"]
        ends = ends or [derived.steps[-1].result]
        assert_allclose(ends[-len(expected) :], expected[-len(ends) :], rtol=1e-9)
        json.dumps(derived.as_dict(), allow_nan=False)
        assert derived.html.count("<section>") == 2 + model.model_.n_trees


def test_the_way_of_a_row_is_that_of_apply(fitted):
    _, model, _ = fitted
    leaves = model.apply(X[5:6])[0]
    derived = model.explain_prediction(X[5])
    for tree, leaf in enumerate(leaves):
        (section,) = (s for s in derived.sections if s.heading.split(" of ")[0] == f"Tree {tree}")
        ways = [line for line in section.lines if isinstance(line, str) and "→" in line]
        assert ways[-1].endswith(f"→ node {leaf}") if ways else leaf == 0


# --- what is said in words -----------------------------------------------------------------------


def test_levels_are_named_by_their_values():
    frame = pd.DataFrame(
        {"size": X[:, 0], "colour": np.array(["red", "blue", "<b>"])[np.arange(N_ROWS) % 3]}
    )
    frame["colour"] = frame["colour"].astype("category")
    y = np.where(frame["colour"] == "red", 5.0, np.where(frame["colour"] == "blue", 0.0, 4.9))
    model = XGBRegressorLite(n_estimators=1, max_depth=1, max_cat_to_onehot=1).fit(frame, y)
    split = model.explain_split(0)
    assert "split at colour in {'blue'}" in split.title
    assert "Rows with colour in {'blue'} go to node 1, all others to node 2." in split.text
    prediction = model.explain_prediction(frame.iloc[[0]])
    assert "colour = 'red', not in {'blue'} → node 2" in prediction.text
    odd = model.explain_prediction(frame.iloc[[2]])
    assert "colour = '<b>'" in odd.text
    assert "<b>" not in odd.html
    assert "&lt;b&gt;" in odd.html
    assert "colour = 'blue', in {'blue'}" in model.explain_prediction(frame.iloc[[1]]).text
    with pytest.warns(UnknownCategoryWarning) as caught:
        unknown = model.explain_prediction(frame.iloc[[1]].assign(colour=pd.Categorical(["grey"])))
    assert [own.filename for own in caught] == [__file__]
    assert "colour is missing" in unknown.text


def test_missing_values():
    x = np.array([1.0, 2.0, np.nan, np.nan])[:, np.newaxis]
    model = XGBRegressorLite(n_estimators=1, max_depth=2, min_child_weight=0, reg_lambda=0)
    model.fit(x, [1.0, 2.0, 9.0, 9.5])
    assert (
        "Rows without a value of f0 go to node 1, all others to node 2."
        in model.explain_split(0).text
    )
    assert "Missing values" not in model.explain_split(0).text
    assert "node 0: f0 is missing → node 1" in model.explain_prediction([np.nan]).text
    plain = XGBRegressorLite(n_estimators=1, max_depth=1, min_child_weight=0)
    plain.fit([[0], [1], [np.nan]], [0.0, 5.0, 5.0])
    assert "Missing values go to node 2." in plain.explain_split(0).text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("penalties", "moved towards 0 by alpha: T = max(G - α, 0) + min(G + α, 0)"),
        ("short steps", "within ±Δ (max_delta_step, or the loss's own limit): w = max(-Δ, min(w"),
        ("rare class", "(max_delta_step, or the loss's own limit): w_L = max(-Δ, min(w_L, Δ))"),
        ("leaning on parents", "towards the output above: w_L = s · w_L + (1 - s) · w_above"),
        ("median", "renewed: the median of its rows' residuals: w = "),
        ("quantiles", "renewed: the 0.1 quantile of its rows' residuals"),
        ("quantiles", "Tree 0 of alpha 0.1, node"),
        ("classes", "Tree 1 of class 'b', node"),
        ("labels", "Tree 1 of label 1, node"),
        ("targets", "Tree 1 of target 1, node"),
        ("classes, one tree", "of the left child, output 2: S_L,2 = G_L,2² / (H_L,2 + λ)"),
        ("classes, one tree", "similarity of the left child: S_L = S_L,0 + S_L,1 + S_L,2"),
        ("classes, one tree", "Cover H of the left child, the mean of 3 outputs, is"),
        ("dart", 'booster="dart": η is the learning rate times the weight of the round.'),
        ("forest a round", "η is shared by the 2 trees of a round."),
        ("huber", "are the parameters times the hessian of a typical row"),
        ("hinge", "an upper bound on the second, which is of no use here"),
        ("pre", 'and ≥ gamma 0.2 (pruning="pre")'),
    ],
)
def test_words(name, words):
    model, _ = make(name)
    assert any(words in model.explain_split(*place).text for place in all_nodes(model))


def test_bounds_of_monotone_constraints():
    # both sides of the first split mean 1 and 3.5, so nothing beneath the second is below 2.25
    x, y = [[1, 0], [1, 1], [1, 1], [1, 1], [0, 1], [0, 0]], [2.0, 8.0, 2.0, 2.0, 1.0, 1.0]
    settings = dict(n_estimators=1, max_depth=2, min_child_weight=0, reg_lambda=0, base_score=0)
    model = XGBRegressorLite(monotone_constraints=[1, 0], learning_rate=1, **settings)
    split = model.fit(x, y).explain_split(0, 2)
    text = split.text
    assert "output of the left child: w_L = -G_L / (H_L + λ) = -(-2) / (1 + 0) = 2\n" in text
    assert "left child within the bounds of monotone constraints: w_L = 2.25\n" in text
    formula = "S_L = -(2 · G_L · w_L + (H_L + λ) · w_L²) = -(2 · (-2) · 2.25 + (1 + 0) · 2.25²)"
    assert f"similarity of the left child: {formula} = 3.9375\n" in text
    assert split.result("gain") == 2.9375
    assert text.index("Outputs") < text.index("Similarities")


def test_reasons_of_leaves():
    model, _ = make("plain", keep_pruned=False, gamma=5.0)
    texts = [model.explain_split(0, node).text for node in range(model.model_.tree_starts[1])]
    assert any("keep_pruned=True keeps them" in text for text in texts)
    settings = dict(n_estimators=1, min_child_weight=0)
    x, y = np.arange(8.0)[:, np.newaxis], np.arange(8.0)
    few = XGBRegressorLite(max_leaves=3, **settings).fit(x, y)
    assert "the tree has max_leaves, 3, leaves" in few.explain_split(0, 4).text
    flat = XGBRegressorLite(max_depth=1, **settings).fit(x, y)
    assert "it lies at max_depth, 1 splits below the root" in flat.explain_split(0, 1).text
    strict = XGBRegressorLite(pruning="pre", gamma=100, **settings).fit(x, y)
    assert "gains more than 0 and at least gamma 100" in strict.explain_split(0, 0).text
    single = XGBRegressorLite(n_estimators=1, max_depth=1, pruning="full", min_child_weight=0)
    assert "no split of it is possible" in single.fit(x * 0, y).explain_split(0).text


def test_other_rows_than_those_of_the_training():
    model, y = make("plain")
    assert "The training had G = " in model.explain_split(0, 0, X, y + 1.0).text
    assert "1 of the 1 rows given" in model.explain_split(0, 0, X[:1], y[:1]).text


def test_weights_and_margins():
    weight, margin = RANDOM.uniform(0.5, 2.0, N_ROWS), RANDOM.normal(size=N_ROWS)
    model = XGBRegressorLite(**SMALL).fit(X, Y, sample_weight=weight, base_margin=margin)
    given = dict(sample_weight=weight, base_margin=margin)
    assert "These are the sums of the training" in model.explain_split(2, 0, X, Y, **given).text
    derived = model.explain_prediction(X[3], base_margin=margin[3:4])
    assert "base_margin of the row: F_0 = " in derived.text
    assert_allclose(derived.result("y"), model.predict(X[3:4], base_margin=margin[3:4]), rtol=1e-12)
    with pytest.warns(UserWarning, match="predicts without") as caught:
        model.explain_prediction(X[3])
    assert caught[0].filename == __file__
    assert len(caught) == 1


def test_bins_series_and_forests():
    binned = bin_features(X)
    model = XGBRegressorLite(**SMALL).fit(binned, Y)
    assert "These are the sums of the training" in model.explain_split(1, 0, binned, Y).text
    assert_allclose(model.explain_prediction(binned[:1]).result("y"), model.predict(binned[:1]))
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = XGBRFClassifierLite(n_estimators=3, max_depth=2, random_state=0).fit(frame, CLASSES)
    derived = model.explain_prediction(frame.iloc[7])  # without a warning about names
    assert_allclose(
        [derived.result(f"p_{k}") for k in range(3)], model.predict_proba(frame[7:8])[0]
    )


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((3,), r"tree=3: this model has the trees 0 to 2"),
        ((-1,), r"tree=-1: .*0 to 2"),
        ((0.0,), r"tree=0.0: "),
        ((True,), r"tree=True: "),
        ((0, 99), r"node=99: tree 0 has the nodes 0 to \d+; keep_pruned=True adds"),
        ((0, -1), r"node=-1: tree 0 has"),
        ((0, 0, None, Y), "y is given without X"),
    ],
)
def test_what_is_not_there(arguments, words):
    model, _ = make("plain", keep_pruned=False, gamma=5.0)
    with pytest.raises(ValueError, match=words):
        model.explain_split(*arguments)
    for name in ("sample_weight", "base_margin"):
        with pytest.raises(ValueError, match=f"{name} is given without y"):
            model.explain_split(0, 0, X, **{name: Y})


def test_errors_of_rows():
    model, _ = make("plain")
    with pytest.raises(ValueError, match=r"x has 2 rows: .*pass one, such as X\[:1\]"):
        model.explain_prediction(X[:2])
    with pytest.raises(ValueError, match="3 features"):
        model.explain_prediction(X[0, :3])
    for method in ("explain_split", "explain_prediction"):
        with pytest.raises(NotFittedError):
            getattr(XGBRegressorLite(), method)(0)


def test_a_node_below_a_thousand_others_that_smooth_its_output(tmp_path):
    n = 1_100
    X, y = np.arange(n)[:, np.newaxis], np.random.default_rng(0).normal(size=n)
    model = XGBRegressorLite(
        **dict(n_estimators=1, max_depth=n, max_bin=n, max_cat_to_onehot=n + 1, path_smooth=0.5),
        **dict(reg_lambda=0.0, min_child_weight=0.0, categorical_features=[0]),
    ).fit(X, y)
    table = model.trees_to_dataframe()
    last = len(table) - 1
    assert table["Cover"].nunique() == n  # each split parts one row from the others
    above = table.index[table["Yes"].eq(f"0-{last}") | table["No"].eq(f"0-{last}")][0]
    derivation = model.explain_split(0, last)
    (share,) = [step for step in derivation.steps if "w_above" in step.values]
    assert_allclose(share.values["w_above"], table["Output"][above], rtol=1e-9)
    assert_allclose(derivation.result("w"), table["Output"][last], rtol=1e-9)
    model.to_html(tmp_path / "page.html")
