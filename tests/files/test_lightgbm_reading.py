"""Text models of LightGBM, whole and damaged, as trees and what they mean."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sklboost import from_lightgbm
from sklboost.files.lightgbm import encode_categories, read_lightgbm, read_text, read_trees
from sklboost.files.sections import ModelFileError

# Two trees: a number whose zeros and missing values are told apart by nothing, and a category.
TEXT = """tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx=1
objective=regression
feature_names=size kind
feature_infos=[-1:4] 2:0:70
tree_sizes=1 1

Tree=0
num_leaves=3
num_cat=0
split_feature=0 0
split_gain=9 4
threshold=1.5 -2
decision_type=2 10
left_child=1 -1
right_child=-2 -3
leaf_value=11 14 12
leaf_weight=1 1 2
leaf_count=1 1 2
internal_value=12.25 11.6667
internal_weight=4 3
internal_count=4 3
is_linear=0
shrinkage=1


Tree=1
num_leaves=2
num_cat=1
split_feature=1
split_gain=0
threshold=0
decision_type=1
left_child=-1
right_child=-2
leaf_value=-0.5 0.5
leaf_weight=2 2
leaf_count=2 2
internal_value=0
internal_weight=4
internal_count=4
cat_boundaries=0 3
cat_threshold=5 0 64
is_linear=0
shrinkage=0.5


end of trees

feature_importances:
size=2
kind=1

parameters:
[boosting: gbdt]
[objective: regression]
[learning_rate: 0.5]
[lambda_l2: 0]
[num_leaves: 31]
[max_depth: -1]
[bagging_freq: 0]
[bagging_fraction: 1]
[extra_trees: 0]

end of parameters

pandas_categorical:null
"""


@pytest.mark.parametrize("kind", ["categories", "forest", "linear"])
def test_files_of_lightgbm_4_7_predict_the_same_for_ever(kind):
    path = Path(__file__).parent / "data" / f"lightgbm_{kind}.txt"
    known = json.loads(path.with_suffix(".json").read_text("utf-8"))
    rows = np.array(known["rows"], dtype=object)
    model = from_lightgbm(path)
    if kind == "categories":
        rows = pd.DataFrame(rows, columns=model.feature_names_in_)
        rows = rows.astype({"a_b": float, "kind": "category"})
    else:
        rows = rows.astype(np.float64)
    predict = getattr(model, "predict_proba", model.predict)
    np.testing.assert_allclose(predict(rows), known["predictions"], rtol=1e-12)


def read(text=TEXT):
    return read_lightgbm(text.encode("utf-8"), "m.txt")


def test_thresholds_include_what_is_equal():
    (first, _), _, _ = read()
    assert first.threshold[:2].tolist() == [np.nextafter(1.5, 2), np.nextafter(-2.0, 0)]


def test_gradients_are_known_where_gains_follow_from_them():
    (first, _), _, _ = read()
    assert np.isnan(first.gradient).all()  # the gains in the text are made up
    # leaf weights are -2.5, 3.5 and -0.5, covers 1, 1 and 2
    right, left, parent = 3.5**2, 2.5**2 + 2 * 0.5**2, 3.5**2 / 3
    text = TEXT.replace("split_gain=9 4", f"split_gain={right + parent:.4g} {left - parent:.4g}")
    (first, _), _, _ = read(text)
    np.testing.assert_allclose(first.gradient, [0.0, 3.5, 2.5, -3.5, 1.0], atol=1e-12)
    np.testing.assert_allclose(first.gain[:2], [right + parent, left - parent])
    np.testing.assert_allclose(first.value[:2, 0], [0.0, -0.5 * 3.5 / 3], atol=1e-12)


def test_zero_can_be_missing():
    text = TEXT.replace("decision_type=2 10", "decision_type=4 10")  # zero goes right
    with pytest.raises(ModelFileError, match=r"tree 0\.decision_type: split 1 takes zero for a "):
        read(text)
    text = TEXT.replace("decision_type=2 10", "decision_type=4 6")
    (first, _), _, info = read(text.replace("cat_threshold=5", "cat_threshold=4"))
    assert info.missing == 0.0
    assert first.default_left[:2].tolist() == [False, True]
    with pytest.raises(ModelFileError, match="zero is missing, and a category as well"):
        read(text)


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("tree\nversion", "three\nversion", "no text model"),
        ("version=v4", "version=v9", r"version: must be one of 'v2', 'v3', 'v4', and is 'v9'"),
        ("end of trees", "", "ends before the line 'end of trees'"),
        ("num_class=1", "num_class=x", r"num_class: must be an integer"),
        ("num_class=1", "num_class=3", "1 tree"),
        ("objective=regression\nf", "f", "user's own"),
        ("objective=regression\nf", "objective=lambdarank\nf", "objective: must be one of"),
        ("objective=regression\nf", "objective=regression sqrt\nf", "reg_sqrt"),
        ("max_feature_idx=1", "max_feature_idx=7", "has 2 features"),
        ("num_leaves=3", "num_leaves=3\nnum_leaves=3", "tree 0 has the key 'num_leaves' more"),
        ("num_leaves=3", "num_leaves=4", r"tree 0\.\w+: must have 3 elements, and has 2"),
        ("num_leaves=3", "num_leaves=0", r"tree 0\.num_leaves\[0\]"),
        ("num_leaves=3", "num_leaves=9999999999999999999999", r"tree 0\.num_leaves"),
        (
            "split_feature=0 0",
            "split_feature=0 2",
            r"split_feature\[1\]: must be an integer from 0",
        ),
        ("split_feature=0 0", "split_feature=0 a", r"tree 0\.split_feature: invalid literal"),
        (
            "split_feature=0 0",
            "split_feature=1 0",
            "feature 1 is a category, and split by a number",
        ),
        ("left_child=1 -1", "left_child=0 -1", "left_child: a child comes before its parent"),
        ("left_child=1 -1", "left_child=1 -4", r"left_child\[1\]: must be an integer from -3 to 1"),
        ("right_child=-2 -3", "right_child=-2 -1", "two parents"),
        ("leaf_value=11 14 12", "leaf_value=11 nan 12", r"leaf_value\[1\]: must be a finite"),
        ("decision_type=2 10", "decision_type=2 12", r"decision_type\[1\]: must be an integer"),
        ("cat_boundaries=0 3", "cat_boundaries=0 2", "cat_boundaries: does not divide"),
        ("cat_boundaries=0 3", "cat_boundaries=0 4", r"cat_boundaries\[1\]: must be an integer"),
        ("cat_threshold=5 0 64", "cat_threshold=5 0 -1", r"cat_threshold\[2\]"),
        ("cat_threshold=5 0 64", f"cat_threshold=5 0 {2**32}", r"cat_threshold\[2\]"),
        ("num_cat=1", "num_cat=2", r"num_cat\[0\]: must be an integer from 1 to 1"),
        ("[lambda_l2: 0]", "[lambda_l2: -1]", "lambda_l2: must be a finite number >= 0"),
        (":null", ':[["a", "b"]]', "more categories than the feature has"),
        (":null", ':[["a"], ["b"]]', "these are of 2 pandas columns, but 1 features"),
        (":null", ":[[1, 1.0]]", "occurs twice"),
        (":null", ":[[[]]]", "must be a list of texts and numbers"),
        (":null", ":[[", "pandas_categorical: no JSON"),
    ],
)
def test_damaged_files_are_refused_with_the_place(old, new, place):
    assert old in TEXT
    with pytest.raises(ModelFileError, match=place):
        from_lightgbm(TEXT.replace(old, new, 1).encode("utf-8"))


def _splits_by_category(sets, of_split):
    """Return a text of a tree that is a chain of splits by one feature, with sets as words."""
    n_splits = len(of_split)
    n_leaves, starts = n_splits + 1, np.cumsum([0, *map(len, sets)])
    rows = {
        "num_leaves": [n_leaves],
        "num_cat": [len(sets)],
        "split_feature": [0] * n_splits,
        "split_gain": [1] * n_splits,
        "threshold": of_split,
        "decision_type": [1] * n_splits,
        "left_child": [*range(1, n_splits), -n_leaves],
        "right_child": [-1 - leaf for leaf in range(n_splits)],
        "leaf_value": [1] * n_leaves,
        "leaf_count": [1] * n_leaves,
        "internal_value": [0] * n_splits,
        "cat_boundaries": starts.tolist(),
        "cat_threshold": [word for words in sets for word in words],
        "is_linear": [0],
        "shrinkage": [1],
    }
    tree = "\n".join(f"{key}={' '.join(map(str, row))}" for key, row in rows.items())
    return (
        "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nmax_feature_idx=0\n"
        "objective=regression\nfeature_names=a\nfeature_infos=0:1\n\nTree=0\n"
        f"{tree}\n\n\nend of trees\n\npandas_categorical:null\n"
    )


def test_a_short_text_has_no_large_sets_of_categories():
    assert from_lightgbm(_splits_by_category([[1], [2]], [1, 0])).model_.n_trees == 1
    for of_split in ([0, 0], [0, 2], [0, 0.5], [0, "nan"]):
        with pytest.raises(ModelFileError, match="sets 0 to 1, each of them once"):
            from_lightgbm(_splits_by_category([[1], [2]], of_split))
    with pytest.raises(ModelFileError, match="split 0: more than 65534 categories"):
        from_lightgbm(_splits_by_category([[2**32 - 1] * 2048], [0]))


def test_splits_are_gone_through_once_for_all_features():
    class Counted(dict):
        n_passes = 0

        def items(self):
            self.n_passes += 1
            return super().items()

    text = read_text(_splits_by_category([[1], [2]], [0, 1]).encode("utf-8"), "text")
    (tree,), _ = read_trees(text.trees, 9)
    splits = Counted(tree.categories)
    trees = [tree._replace(categories=splits)]
    (coded,), encodings = encode_categories(trees, text, ["0:1"] * 9)
    assert [codes.tolist() for codes in coded.categories.values()] == [[0], [1]]
    assert len(encodings) == 9
    assert splits.n_passes == 2  # for the values that they know, and to replace these by codes
