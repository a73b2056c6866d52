"""Contents and places of what is drawn, not pixels."""

from itertools import pairwise
from time import process_time

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.data.encoding import Encoding
from sklboost.displays import TreeDisplay, plot_tree
from sklboost.displays.tree import node_colour, place_nodes
from tests.small_models import small


@pytest.fixture(scope="module")
def drawn(regressor):
    """Return the drawing of the first tree, which tests look at and leave as it is."""
    return TreeDisplay.from_estimator(regressor, 0)


def titles(display):
    return [text.get_text() for text in display.ax_.texts]


def lines(display, node):
    return display.node_texts_[node].get_text().splitlines()


def extents(display, artists):
    renderer = display.figure_.canvas.get_renderer()
    return [artist.get_window_extent(renderer) for artist in artists]


def overlap(first, second):
    # touching is not overlapping; 0.1 of a pixel is rounding
    return (
        min(first.x1, second.x1) - max(first.x0, second.x0) > 0.1
        and min(first.y1, second.y1) - max(first.y0, second.y0) > 0.1
    )


def check_nothing_overlaps(display):
    boxes = extents(display, display.node_boxes_.values())
    texts = extents(display, display.node_texts_.values())
    labels = extents(display, display.edge_texts_.values())
    apart = [*boxes, *labels]
    for i, first in enumerate(apart):
        assert not any(overlap(first, second) for second in apart[:i])
    for box, text in zip(boxes, texts, strict=True):  # letters begin at whole pixels
        assert box.x0 <= text.x0 + 1.0
        assert text.x1 <= box.x1 + 1.0
        assert box.y0 <= text.y0 + 1.0
        assert text.y1 <= box.y1 + 1.0
    around = display.ax_.get_window_extent()
    for own in apart:
        assert around.x0 <= own.x0
        assert own.x1 <= around.x1
        assert around.y0 <= own.y0
        assert own.y1 <= around.y1


def test_worked_example():
    X, y = np.array([[10.0], [20.0], [25.0], [35.0]]), np.array([-10.0, 7.0, 8.0, -7.0])
    model = XGBRegressorLite(
        **dict(n_estimators=1, max_depth=2, reg_lambda=0, learning_rate=1, base_score=0.5),
        min_child_weight=0,
    )
    X = pd.DataFrame(X, columns=["dosage"])
    display = TreeDisplay.from_estimator(model.fit(X, y))
    root = ["node 0", "dosage < 15", "gain 120.3", "cover 4", "value -1"]
    assert lines(display, 0) == root
    assert lines(display, 1) == ["leaf 1", "cover 1", "value -10.5"]
    assert lines(display, 2)[:3] == ["node 2", "dosage < 30", "gain 140.2"]
    assert lines(display, 3) == ["leaf 3", "cover 2", "value 7"]
    assert lines(display, 4) == ["leaf 4", "cover 1", "value -7.5"]
    assert [title for title in titles(display) if "tree" in title] == ["tree 0"]


def test_every_node_of_the_table_is_drawn_yes_on_the_left_and_children_below(regressor, drawn):
    frame = regressor.trees_to_dataframe().query("Tree == 0").set_index("Node")
    assert set(drawn.node_texts_) == set(frame.index)
    places = {number: text.get_position() for number, text in drawn.node_texts_.items()}
    for number, row in frame.iterrows():
        shown = dict(line.split(" ", 1) for line in lines(drawn, number))
        assert float(shown["cover"]) == pytest.approx(row["Cover"], rel=1e-3)
        if row["Feature"] == "Leaf":
            assert float(shown["value"].replace(",", "")) == pytest.approx(row["Gain"], rel=1e-3)
            continue
        assert float(shown["gain"].replace(",", "")) == pytest.approx(row["Gain"], rel=1e-3)
        assert shown[row["Feature"]].startswith("< ")
        children = [int(row[side].split("-")[1]) for side in ("Yes", "No")]
        for child, word in zip(children, ("yes", "no"), strict=True):
            words = f"{word}, missing" if row["Missing"] == f"0-{child}" else word
            assert drawn.edge_texts_[child].get_text() == words
        yes, no = (places[child] for child in children)
        assert yes[0] < places[number][0] < no[0]
        assert yes[1] == pytest.approx(no[1], abs=40)
        assert min(yes[1], no[1]) > places[number][1]  # heights grow downwards


@pytest.mark.parametrize("max_depth", [1, 3, 0])
def test_nothing_overlaps(max_depth):
    random = np.random.default_rng(0)
    names = ["a", "a name of middling length", "a name that is far too long for any picture"]
    X = pd.DataFrame(random.normal(size=(60, 3)), columns=names)
    y = X.iloc[:, 0] + X.iloc[:, 1] * X.iloc[:, 2]
    model = small(XGBRegressorLite, n_estimators=1, max_depth=max_depth).fit(X, y)
    display = TreeDisplay.from_estimator(model)
    assert len(display.node_boxes_) == len(model.model_.nodes)
    check_nothing_overlaps(display)


def test_texts_become_small_in_small_axes(regressor, drawn):
    figure, axes = plt.subplots(1, 2, figsize=(9, 4))
    display = TreeDisplay.from_estimator(regressor, 0, ax=axes[1])
    assert display.ax_ is axes[1]
    assert display.figure_ is figure
    assert display.node_texts_[0].get_fontsize() < 6
    check_nothing_overlaps(display)
    assert drawn.node_texts_[0].get_fontsize() == 9.0


def test_max_depth(regressor):
    display = TreeDisplay.from_estimator(regressor, 0, max_depth=1)
    frame = regressor.trees_to_dataframe().query("Tree == 0")
    assert set(display.node_texts_) == {0, 1, 2}
    below = [int(lines(display, node)[-1].split()[1]) for node in (1, 2)]
    assert sum(below) == (frame["Feature"] == "Leaf").sum()
    assert lines(display, 1)[-1] == f"… {below[0]} leaves"
    alone = TreeDisplay.from_estimator(regressor, 0, max_depth=0)
    assert list(alone.node_texts_) == [0]
    assert alone.edge_texts_ == {}


def test_colours_follow_values_and_leaves_have_a_thick_frame(regressor, drawn):
    nodes = regressor.model_.nodes[: regressor.model_.tree_starts[1]]
    values, strongest = nodes.value, int(np.abs(nodes.value).argmax())
    assert values.min() < 0 < values.max()
    for number, box in drawn.node_boxes_.items():
        red, _, blue, _ = box.get_facecolor()
        if abs(values[number]) > 1e-3:
            assert (red > blue) == (values[number] > 0)
        assert box.get_linewidth() == (1.6 if nodes.left[number] < 0 else 0.7)
    colour = drawn.node_boxes_[strongest].get_facecolor()[:3]
    assert colour == pytest.approx(node_colour(np.sign(values[strongest])))
    assert node_colour(0.0) == (1.0, 1.0, 1.0)


def luminance(colour):
    """Return the relative luminance of the Web Content Accessibility Guidelines 2.1."""
    parts = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return np.dot(parts, [0.2126, 0.7152, 0.0722])


def test_text_is_black_on_light_nodes(drawn):
    for share in (-1.0, -0.5, 0.0, 0.5, 1.0):
        contrast = (luminance(node_colour(share)) + 0.05) / 0.05
        assert contrast > 7.0  # the guidelines' highest level
    assert {text.get_color() for text in drawn.node_texts_.values()} == {"black"}


def test_categories_and_times():
    random = np.random.default_rng(0)
    categories = ["Llanfairpwllgwyngyll", "Oslo", "Paris", "Reykjavik", "Rome", "Ulaanbaatar"]
    X = pd.DataFrame(
        {
            "city": pd.Categorical(random.choice(categories, 300), categories=categories),
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(300), "D"),
        }
    )
    y = 10.0 * X["city"].isin(categories[:5]) + (X["when"] >= "2020-06-01")
    model = small(XGBRegressorLite, max_depth=2, reg_lambda=0).fit(X, y)
    display = TreeDisplay.from_estimator(model)
    split = lines(display, 0)[1]
    assert split in ("city in {Ulaanbaatar}", "city in {Llanfa…yngyll, Oslo, +3}")
    for node in (1, 2):
        name, date = lines(display, node)[1].split(" < ")
        assert name == "when"
        assert "2020-05-25" < date <= "2020-06-01"  # halfway between two rows of the node


def test_a_split_that_parts_missing_values_from_all_others():
    X = pd.DataFrame({"gaps": np.where(np.arange(40) % 3 == 0, np.nan, 1.0)})
    display = TreeDisplay.from_estimator(small(XGBRegressorLite).fit(X, 1.0 * X["gaps"].isna()))
    assert lines(display, 0)[1] in ("gaps is missing", "gaps < inf")
    words = display.edge_texts_[1 if lines(display, 0)[1] == "gaps is missing" else 2].get_text()
    assert words.endswith("missing")


def test_names_with_dollars_are_no_formulas():
    X = pd.DataFrame({r"price $\frac{$": np.arange(20.0)})
    display = TreeDisplay.from_estimator(small(XGBRegressorLite).fit(X, X.iloc[:, 0]))
    display.figure_.canvas.draw()
    assert lines(display, 0)[1] == r"price \$\frac{\$ < 9.5"


def test_titles_and_values_of_several_outputs(classifier):
    display = TreeDisplay.from_estimator(classifier, 4)
    assert "tree 4 (round 1, class 'versicolor')" in titles(display)
    X = np.arange(40.0).reshape(20, 2)
    y = np.column_stack([X[:, 0], -X[:, 0]])
    model = small(XGBRegressorLite, multi_strategy="multi_output_tree").fit(X, y)
    first, second = (TreeDisplay.from_estimator(model, output=own) for own in (0, 1))
    for number in first.node_texts_:
        values = [float(lines(own, number)[-1].split()[1]) for own in (first, second)]
        assert values[0] == pytest.approx(-values[1])
    assert "tree 0 (round 0, target 1)" in titles(second)


def test_linear_leaves_name_their_features():
    X = np.random.default_rng(0).normal(size=(100, 2))
    model = small(XGBRegressorLite, linear_tree=True).fit(X, X[:, 0])
    display = TreeDisplay.from_estimator(model)
    assert any(text.get_text().endswith("+ line in f0") for text in display.node_texts_.values())


def test_a_tree_without_splits():
    model = small(XGBRegressorLite).fit(np.zeros((5, 1)), np.arange(5.0))
    display = TreeDisplay.from_estimator(model)
    assert lines(display, 0) == ["leaf 0", "cover 5", "value 0"]
    assert display.node_boxes_[0].get_facecolor()[:3] == (1.0, 1.0, 1.0)


def test_numbers_of_trees_by_names_of_xgboost(regressor):
    for settings in (dict(tree=3), dict(tree_idx=3), dict(tree_idx=3, num_trees=3)):
        axes = plot_tree(regressor, max_depth=1, **settings)
        assert axes.texts[0].get_text() == "tree 3"
    with pytest.raises(ValueError, match=r"^num_trees=4 and tree=3: give one of them"):
        plot_tree(regressor, 3, num_trees=4)


def test_a_tree_from_left_to_right(regressor, drawn):
    right = TreeDisplay.from_estimator(regressor, 0, rankdir="LR")
    for node, text in right.node_texts_.items():
        assert text.get_text() == drawn.node_texts_[node].get_text()
    assert set(right.node_texts_) == set(drawn.node_texts_)
    right.figure_.canvas.draw()
    boxes = {node: box.get_window_extent() for node, box in right.node_boxes_.items()}
    frame = regressor.trees_to_dataframe().query("Tree == 0 and Feature != 'Leaf'")
    for row in frame.itertuples():
        yes, no = (boxes[int(child.split("-")[1])] for child in (row.Yes, row.No))
        own = boxes[row.Node]
        assert own.x1 < min(yes.x0, no.x0)
        assert yes.y0 > no.y1  # "yes" is above
        assert no.y1 < (own.y0 + own.y1) / 2 < yes.y0
    placed = list(boxes.values())
    assert not any(a.overlaps(b) for i, a in enumerate(placed) for b in placed[:i])
    for node, text in right.edge_texts_.items():
        label = text.get_window_extent()
        assert not any(label.overlaps(box) for box in placed), node
    with pytest.raises(ValueError, match=r"^rankdir='UT': it must be 'TB' or 'LR'$"):
        plot_tree(regressor, rankdir="UT")


def test_to_lay_out_a_tree_takes_less_time_than_to_paint_it():
    X = np.random.default_rng(0).normal(size=(1000, 2))
    model = small(XGBRegressorLite, n_estimators=1, max_depth=6).fit(X, X[:, 0] * X[:, 1])
    plot_tree(model, max_depth=1).figure.canvas.draw()  # reads fonts
    shares = []
    for _ in range(3):  # garbage of other tests may be collected on the way
        start = process_time()
        figure = plot_tree(model).figure
        laid_out = process_time()
        figure.canvas.draw()
        shares.append((laid_out - start) / (process_time() - laid_out))
    assert min(shares) < 0.7


def test_without_gains_and_covers(regressor):
    display = TreeDisplay.from_estimator(regressor, max_depth=2, with_stats=False)
    assert [len(lines(display, node)) for node in (0, 1)] == [3, 3]
    text = " ".join(own.get_text() for own in display.node_texts_.values())
    assert "gain" not in text
    assert "cover" not in text
    assert text.count("value") == len(display.node_texts_)


def test_errors(regressor, classifier):
    last = regressor.model_.n_trees - 1
    with pytest.raises(ValueError, match=rf"^tree=99: the model has the trees 0 to {last}$"):
        plot_tree(regressor, 99)
    with pytest.raises(ValueError, match=r"^tree=-1: the model has the trees 0 to 8$"):
        plot_tree(classifier, -1)
    with pytest.raises(ValueError, match=r"^output=1: trees have values for outputs 0$"):
        plot_tree(classifier, output=1)
    with pytest.raises(ValueError, match=r"^max_depth=-1: it must be None or an integer >= 0$"):
        plot_tree(classifier, max_depth=-1)
    with pytest.raises(ValueError, match=r"^precision=0: it must be an integer >= 1$"):
        plot_tree(classifier, precision=0)
    with pytest.raises(NotFittedError):
        plot_tree(XGBClassifierLite())
    with pytest.raises(TypeError, match="no estimator of sklboost"):
        plot_tree(LinearRegression())


# --- where nodes are placed


LEAF = (-1, -1)


def random_tree(random, n_splits):
    """Return the children of a tree that grows at a random leaf, so also long thin ones."""
    children, leaves = [LEAF], [0]
    for _ in range(n_splits):
        node = leaves.pop(random.integers(len(leaves)))
        children[node] = (len(children), len(children) + 1)
        leaves += children[node]
        children += [LEAF, LEAF]
    return children


def depths_of(children):
    depths = [0] * len(children)
    for node, pair in enumerate(children):
        for child in pair:
            if child >= 0:
                depths[child] = depths[node] + 1
    return depths


@pytest.mark.interpreted
def test_three_nodes_side_by_side():
    centres, width = place_nodes([(1, 2), LEAF, LEAF], [4.0, 10.0, 20.0], space=2.0)
    # from 0 to 10, and from 12 to 32; the root in the middle between the two centres
    assert centres == [13.5, 5.0, 22.0]
    assert width == 32.0


@pytest.mark.interpreted
def test_subtrees_are_as_close_as_they_fit():
    # the right one is a single node: the deepest nodes of the left one pass below it
    children = [(1, 2), (3, 4), LEAF, LEAF, (5, 6), LEAF, LEAF]
    centres, width = place_nodes(children, [2.0] * 7)
    assert depths_of(children) == [0, 1, 1, 2, 2, 3, 3]
    assert centres[2] - centres[1] == 2.0
    assert width < 7.0


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", range(8))
def test_no_two_nodes_of_a_depth_overlap_and_parents_are_in_the_middle(seed):
    random = np.random.default_rng(seed)
    children = random_tree(random, int(random.integers(1, 60)))
    widths, space = random.uniform(1.0, 30.0, len(children)), 3.0
    centres, width = place_nodes(children, widths, space)
    centres, depths = np.array(centres), depths_of(children)
    assert (centres - widths / 2).min() == pytest.approx(0.0, abs=1e-9)
    assert (centres + widths / 2).max() == pytest.approx(width)
    for depth in set(depths):
        side_by_side = np.flatnonzero(np.array(depths) == depth)
        for left, right in pairwise(side_by_side[np.argsort(centres[side_by_side])]):
            free = (centres[right] - widths[right] / 2) - (centres[left] + widths[left] / 2)
            assert free >= space - 1e-9
    for node, (left, right) in enumerate(children):
        if left >= 0:
            assert centres[node] == pytest.approx((centres[left] + centres[right]) / 2)
            assert centres[left] < centres[right]
            assert depths[left] == depths[right] == depths[node] + 1


# --- thresholds as values of their columns


def threshold_of(column, y):
    """Return the threshold that a stump has for a column, as a value of it."""
    settings = dict(n_estimators=1, max_depth=1)
    model = small(XGBRegressorLite, **settings).fit(pd.DataFrame({"x": column}), y)
    encodings = model._fitted.encodings
    encoding = Encoding() if encodings is None else encodings[0]
    (value,) = encoding.originals(model.model_.nodes.threshold[:1])
    return value


def step(n, place):
    return (np.arange(n) >= place).astype(float)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    "column",
    [
        pd.date_range("2020-01-01", periods=10, freq="D"),
        pd.date_range("2020-01-01", periods=10, freq="h"),
        pd.to_timedelta(np.arange(10), unit="min"),
        pd.array(2**60 + np.arange(10), dtype="Int64"),
        pd.Timestamp("2020-01-01") + pd.to_timedelta(2**58 + np.arange(10), unit="ns"),
    ],
)
@pytest.mark.parametrize("place", [1, 4, 9])
def test_x_less_than_the_value_says_what_the_threshold_says(column, place):
    value = threshold_of(column, step(10, place))
    values = np.asarray(column)
    value = value if values.dtype.kind == "i" else value.astype(values.dtype)
    assert_array_equal(values < value, np.arange(10) < place)
