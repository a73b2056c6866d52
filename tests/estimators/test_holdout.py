import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from sklboost import bin_features
from sklboost.data.row_hashes import hash_rows, tell_copies_apart
from sklboost.estimators.fit.holdout import hold_out
from sklboost.estimators.input.rows import Rows

NO_WEIGHT = np.empty(0)


def choose(X, y, weight=NO_WEIGHT, groups=(), stratified=False, **settings):
    defaults = dict(fraction=0.1, how="random", parts=y if stratified else None, seed=0)
    rows = Rows(X, y, weight, np.empty((0, 0)), groups=np.asarray(groups))
    mask = hold_out(rows, **defaults | settings)
    assert mask.dtype == bool
    assert mask.shape == y.shape
    assert mask.any()
    assert not mask.all()
    return mask


@pytest.fixture(scope="module", params=[load_breast_cancer, load_wine, load_diabetes])
def case(request):
    """Return features, targets, and whether they are classes."""
    X, y = request.param(return_X_y=True)
    return X, y.astype(float), request.param is not load_diabetes


# --- at random -----------------------------------------------------------------------------------


def test_the_fraction_is_held_out_of_every_class(case):
    X, y, stratified = case
    for fraction in (0.01, 0.1, 0.25, 0.5, 0.9):
        mask = choose(X, y, fraction=fraction, stratified=stratified)
        for class_ in np.unique(y) if stratified else [None]:
            rows = y == class_ if stratified else np.ones(len(y), dtype=bool)
            assert mask[rows].sum() == np.ceil(fraction * rows.sum())


@pytest.mark.interpreted
def test_a_share_in_floating_point_costs_no_row():
    X = np.arange(100.0)[:, np.newaxis]
    assert 0.07 * 100 > 7
    for how in ("random", "time"):
        assert choose(X, X[:, 0], fraction=0.07, how=how).sum() == 7
        assert choose(X, X[:, 0], fraction=0.0701, how=how).sum() == 8


def test_the_order_of_the_rows_does_not_matter(case):
    X, y, stratified = case
    mask = choose(X, y, stratified=stratified)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(y))
        assert_array_equal(choose(X[order], y[order], stratified=stratified), mask[order])


@pytest.mark.interpreted
def test_copies_are_chosen_each_on_its_own():
    random = np.random.default_rng(0)
    X = random.integers(0, 2, size=(1000, 2)).astype(float)
    y = random.integers(0, 2, size=1000).astype(float)
    mask = choose(X, y, fraction=0.2, stratified=True)
    assert mask.sum() == sum(np.ceil(0.2 * (y == class_).sum()) for class_ in (0, 1))
    for row in np.unique(np.c_[X, y], axis=0):  # 8 distinct rows of about 125 copies each
        assert 0.1 < mask[(np.c_[X, y] == row).all(axis=1)].mean() < 0.3


@pytest.mark.parametrize("is_weighted", [False, True])
def test_the_order_of_copies_does_not_matter(is_weighted):
    random = np.random.default_rng(0)
    X = random.integers(0, 4, size=(300, 2)).astype(float)
    y = random.integers(0, 2, size=300).astype(float)
    weight = random.exponential(size=300) if is_weighted else NO_WEIGHT

    def held_out(order):
        own = weight[order] if is_weighted else NO_WEIGHT
        mask = choose(X[order], y[order], own, fraction=0.3, stratified=True)
        table = np.c_[X[order], y[order], own if is_weighted else y[order]][mask]
        return table[np.lexsort(table.T)]

    assert_array_equal(held_out(np.arange(300)), held_out(random.permutation(300)))


def test_the_seed_chooses(case):
    X, y, stratified = case
    masks = [choose(X, y, seed=seed, stratified=stratified) for seed in range(200)]
    assert_array_equal(masks[3], choose(X, y, seed=3, stratified=stratified))
    how_often = np.mean(masks, axis=0)
    # about as often for every row
    assert_allclose(how_often, 0.1, atol=5 * np.sqrt(0.1 * 0.9 / 200) + 0.01)


def test_the_form_of_the_values_does_not_matter():
    X, y = load_breast_cancer(return_X_y=True)
    X = X.astype(np.float32)
    X[::9, 3] = np.nan
    y = y.astype(float)
    mask = choose(X, y, stratified=True)
    for other in (X.astype(float), np.asfortranarray(X)):
        assert_array_equal(choose(other, y, stratified=True), mask)


def test_a_binned_matrix(case):
    X, y, stratified = case
    B = bin_features(X)
    mask = choose(B, y, stratified=stratified)
    assert mask.sum() == choose(X, y, stratified=stratified).sum()
    order = np.random.default_rng(0).permutation(len(y))
    assert_array_equal(choose(B[order], y[order], stratified=stratified), mask[order])


def test_weights_count():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(5000, 3)), (np.arange(5000) % 3).astype(float)
    weight = random.exponential(size=5000)
    mask = choose(X, y, weight, stratified=True)
    for class_ in range(3):
        rows = y == class_
        taken, total = weight[rows & mask].sum(), weight[rows].sum()
        assert 0.1 * total <= taken < 0.1 * total + weight.max()


def test_weights_of_very_different_sizes():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(100, 3)), np.repeat([0.0, 1.0], 50)
    for classes in (1e8, 1e-20):  # of which the rows of one weigh next to nothing
        mask = choose(X, y, np.where(y == 0, 1 / classes, classes), fraction=0.2, stratified=True)
        assert [mask[y == class_].sum() for class_ in (0, 1)] == [10, 10]
    order = np.argsort(tell_copies_apart(hash_rows(X, y, 0), NO_WEIGHT))
    for place in (0, 40, 99):  # of one row that outweighs all others
        weight = np.ones(100)
        weight[order[place]] = 1e30
        # what comes before it, and it itself unless it is the last
        mask = choose(X, y, weight, fraction=0.2)
        assert_array_equal(np.flatnonzero(mask), np.sort(order[: min(place + 1, 99)]))
        groups = np.arange(100) // 20
        held_out = choose(X, y, weight, fraction=0.2, groups=groups)
        assert 0 < len(set(groups[held_out])) < 5


@pytest.mark.interpreted
def test_the_last_row_of_a_class_is_for_training():
    X = np.arange(6.0)[:, np.newaxis]
    y = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 2.0])
    mask = choose(X, y, fraction=0.99, stratified=True)
    assert mask.sum() == 3
    assert not mask[4:].any()
    assert choose(X, y, fraction=0.99).sum() == 5


@pytest.mark.interpreted
def test_the_last_row_of_a_need_is_for_training():
    X, y = np.arange(40.0)[:, np.newaxis], np.zeros(40)
    plain = choose(X, y, fraction=0.5)
    rare = np.full(40, np.nan)
    rare[np.flatnonzero(plain)[:3]] = [0.0, 0.0, 1.0]
    mask = choose(X, y, fraction=0.5, needs=[rare, np.zeros(40)])
    kept = np.flatnonzero(mask != plain)
    assert sorted(rare[kept]) == [0, 1]
    # what is not lost changes nothing
    rare[~plain] = 0.0
    rare[rare == 1.0] = np.nan
    assert_array_equal(choose(X, y, fraction=0.5, needs=[rare]), plain)


@pytest.mark.interpreted
@pytest.mark.parametrize("how", ["random", "time"])
def test_one_row_cannot_be_divided(how):
    with pytest.raises(ValueError, match=r"n_samples=1: too few rows .* pass X_val and y_"):
        choose(np.zeros((1, 2)), np.zeros(1), how=how)
    if how == "random":
        with pytest.raises(ValueError, match=r"too few rows to hold out a share of 0\.1"):
            choose(np.zeros((2, 1)), np.array([0.0, 1.0]), stratified=True)


# --- groups --------------------------------------------------------------------------------------

LABELS = {
    "integers": np.arange(20) * 3,
    "negative integers": -np.arange(20),
    "strings": np.array([f"patient {k}" for k in range(20)]),
    "objects": np.array([f"p{k}" if k % 2 else k for k in range(20)], dtype=object),
    "dates": np.datetime64("2020-01-01") + np.arange(20),
}


@pytest.mark.parametrize("kind", LABELS)
def test_groups_are_held_out_whole(kind):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(1000, 2)), random.normal(size=1000)
    groups = LABELS[kind][random.integers(0, 20, size=1000)]
    mask = choose(X, y, groups=groups)
    assert not set(groups[mask].tolist()) & set(groups[~mask].tolist())
    assert 0.1 <= mask.mean() < 0.2
    if groups.dtype != object:  # a list of numbers and strings would be an array of strings
        assert_array_equal(choose(X, y, groups=groups.tolist()), mask)
    order = random.permutation(1000)
    assert_array_equal(choose(X[order], y[order], groups=groups[order]), mask[order])
    held_out = {tuple(choose(X, y, groups=groups, seed=seed)) for seed in range(9)}
    assert len(held_out) > 5


def test_weight_2_is_the_row_twice_in_groups():
    random = np.random.default_rng(0)
    for seed in range(20):
        X, y, groups = random.normal(size=(40, 2)), np.zeros(40), random.integers(0, 6, size=40)
        weight = random.integers(1, 5, 40)
        mask = choose(X, y, weight.astype(float), groups=groups, seed=seed)
        rows = np.repeat(np.arange(40), weight)
        repeated = choose(X[rows], y[rows], groups=groups[rows], seed=seed)
        assert_array_equal(repeated, mask[rows])


@pytest.mark.interpreted
def test_groups_are_the_same_in_every_process():
    # which Python's hashes of text are not
    groups = np.array(list("abcdefghij"))
    mask = choose(np.zeros((10, 1)), np.zeros(10), groups=groups, fraction=0.3, seed=1)
    assert "".join(groups[mask]) == "cej"


def test_equal_labels_are_one_group_whatever_their_type():
    X, labels = np.arange(60.0)[:, np.newaxis], np.arange(60) % 6
    expected = choose(X, X[:, 0], groups=labels, fraction=0.4)
    objects = np.array([np.int64(label) if label % 2 else label for label in labels], dtype=object)
    for groups in (labels.astype(np.float32), labels.astype(np.uint8), objects):
        assert_array_equal(choose(X, X[:, 0], groups=groups, fraction=0.4), expected)


@pytest.mark.interpreted
def test_one_of_two_groups_is_for_training():
    X, y = np.arange(10.0)[:, np.newaxis], np.zeros(10)
    for fraction in (0.01, 0.99):
        mask = choose(X, y, groups=np.arange(10) < 5, fraction=fraction)
        assert mask.sum() == 5


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (
            ["a"] * 4,
            "groups, or queries, have one label only, 'a': .* at least 2; pass X_val and y_val",
        ),
    ],
)
def test_groups_that_do_not_fit(groups, message):
    with pytest.raises(ValueError, match=message):
        choose(np.zeros((4, 1)), np.zeros(4), groups=groups)


# --- by time -------------------------------------------------------------------------------------


@pytest.mark.interpreted
def test_the_last_rows():
    X, y = np.zeros((15, 2)), np.zeros(15)
    for fraction, n_held_out in [(0.01, 1), (0.1, 2), (0.2, 3), (0.21, 4), (0.99, 14)]:
        mask = choose(X, y, fraction=fraction, how="time")
        assert_array_equal(mask, np.arange(15) >= 15 - n_held_out)


@pytest.mark.interpreted
def test_groups_and_time_exclude_one_another():
    with pytest.raises(ValueError, match="groups, or queries, were given, and validation_split"):
        choose(np.zeros((4, 1)), np.zeros(4), groups=[1, 1, 2, 2], how="time")
