"""What every loss must pass. They come from the registry, so a new one is tested by itself."""

import pickle
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.estimators.parameters.boosters import LOSS_DEFAULTS
from sklboost.objectives.domains import NOT_NEGATIVE, check_domain
from sklboost.objectives.loss import Loss, RowLoss
from sklboost.objectives.registry import OBJECTIVES
from tests.objectives.training import derivatives_in_training

NO_WEIGHT, NO_SCORES = np.empty(0), np.empty((0, 0))
N_CLASSES = 3
DEFAULTS = LOSS_DEFAULTS
# Beside the defaults, for the losses that have these parameters.
OTHERS = {
    "quantile_alpha": [[0.9, 0.1, 0.5]],
    "expectile_alpha": [[0.9, 0.1, 0.5]],
    "huber_slope": [0.1],
    "fair_c": [0.1],
    "tweedie_variance_power": [1, 1.9, 2],
    "focal_gamma": [0, 0.5],
}
# Targets that some loss is not defined for.
WRONG = {
    "reg:mape": [0.0],
    "reg:squaredlogerror": [-1.0, -3.0],
    "count:poisson": [-1.0],
    "reg:gamma": [0.0, -1.0],
    "reg:tweedie": [-1.0],
    "reg:logistic": [-0.5, 1.5],
}


class Case(NamedTuple):
    """A loss with some value of its parameter."""

    task: str
    name: str
    parameters: dict
    make: object

    def loss(self) -> Loss:
        return self.make(N_CLASSES if self.task == "multiclass" else 1, DEFAULTS | self.parameters)

    def estimator(self, **settings):
        kind = XGBRegressorLite if self.task == "regression" else XGBClassifierLite
        return kind(objective=self.name, **self.parameters, **settings)

    def targets(self, n_rows: int, seed: int = 0) -> np.ndarray:
        """Make targets that the loss is defined for."""
        random = np.random.default_rng(seed)
        if self.task != "regression":
            n_classes = N_CLASSES if self.task == "multiclass" else 2
            return random.permutation(np.arange(n_rows) % n_classes).astype(float)
        return self.fitting([random.normal(size=n_rows), random.gamma(2.0, size=n_rows)])

    def fitting(self, candidates: list) -> np.ndarray:
        """Choose the first targets that the loss is defined for, or some from 0 to 1."""
        for y in candidates:
            if all(map(self.accepts, y)):
                return y
        return candidates[-1] / candidates[-1].max()

    def accepts(self, target: float) -> bool:
        """Whether the loss is defined for a target."""
        try:
            self.loss().check_targets(np.array([target]), "y")
        except ValueError:
            return False
        return True


def all_cases():
    for task, objectives in OBJECTIVES.items():
        # the losses of two classes, one output for each label; those of rankings and of survival
        # times: test_rankings.py, test_cox.py
        if task in ("multilabel", "ranking", "survival"):
            continue
        for objective in objectives:
            parameter = getattr(objective.make(N_CLASSES, DEFAULTS), "parameter", "")
            for values in [{}, *({parameter: value} for value in OTHERS.get(parameter, []))]:
                yield Case(task, objective.name, values, objective.make)


CASES = list(all_cases())


def label(case):
    return " ".join([case.task, case.name, *map(str, case.parameters.values())])


@pytest.fixture(params=CASES, ids=label)
def case(request):
    return request.param


@pytest.fixture(params=[own for own in CASES if not own.parameters], ids=label)
def plain(request):
    """Only the cases with default parameters, for what takes long."""
    return request.param


@pytest.fixture
def data(plain, request):
    """Return real data that suits the loss."""
    X, y = request.getfixturevalue(plain.task)
    return X, plain.fitting([y - y.mean(), y]) if plain.task == "regression" else y


def raw_scores(loss, n_rows, seed=1):
    return np.random.default_rng(seed).normal(scale=1.5, size=(loss.n_outputs, n_rows))


def row_values(loss, y, raw_score):
    """Return the loss of each row, summed over the outputs."""
    # losses of rows give the mean over their outputs
    factor = loss.n_outputs if isinstance(loss, RowLoss) else 1
    rows = [slice(row, row + 1) for row in range(len(y))]
    return factor * np.array([loss.value(y[row], raw_score[:, row], NO_WEIGHT) for row in rows])


# --- derivatives ---------------------------------------------------------------------------------


def test_whether_cover_is_the_number_of_rows(case):
    loss, y = case.loss(), case.targets(30)
    _, hessian = loss.gradients(y, raw_scores(loss, len(y)))
    # of classes it is not, since their weights are in it
    is_one = case.task == "regression" and bool((hessian == 1.0).all())
    # expectiles are squared errors for one alpha only
    assert loss.hessian_is_one == (is_one and case.name != "reg:expectileerror")


@pytest.mark.interpreted
def test_gradient_and_hessian_are_derivatives_of_the_value(case):
    loss, y, step = case.loss(), case.targets(30), 1e-5
    raw_score = raw_scores(loss, len(y))
    gradient, hessian = loss.gradients(y, raw_score)
    for output in range(loss.n_outputs):
        up, down = raw_score.copy(), raw_score.copy()
        up[output] += step
        down[output] -= step
        rise = row_values(loss, y, up) - row_values(loss, y, down)
        assert_allclose(gradient[output], rise / (2 * step), rtol=1e-6, atol=1e-8)
        bend = (loss.gradients(y, up)[0] - loss.gradients(y, down)[0])[output] / (2 * step)
        if loss.hessian_is_bound:
            assert (hessian[output] >= bend - 1e-7 * np.abs(bend)).all()
        else:
            assert_allclose(hessian[output], bend, rtol=1e-6, atol=1e-8)


def test_blocks_of_different_losses_have_different_names():
    """Their code is kept by these names: the loop is the same function for all of them."""
    blocks = {case.loss().block for case in CASES} - {None}
    assert len(blocks) > 10
    assert len({block.__qualname__ for block in blocks}) == len(blocks)


def test_extreme_rows_stay_finite(case):
    loss = case.loss()
    targets = [0.0, 1.0]
    if case.task == "regression":
        targets = [sign * size for sign in (-1, 1) for size in (1e30, 1e5, 1.0, 1e-5, 1e-30, 0.0)]
        targets = list(filter(case.accepts, targets))
    assert len(targets) >= 2
    sizes = [0.0, 1e-30, 1.0, 36.0, 700.0, 1e6]
    for output in range(loss.n_outputs):
        for score in [sign * size for size in sizes for sign in (-1, 1)]:
            y = np.array(targets)
            raw_score = np.zeros((loss.n_outputs, len(y)))
            raw_score[output] = score
            gradient, hessian = derivatives_in_training(loss, y, raw_score)
            assert np.isfinite(gradient).all()
            assert np.isfinite(hessian).all()
            assert (hessian > 0).all()
            assert np.isfinite(loss.predictions(raw_score)).all()
            if case.task != "regression":
                assert_allclose(loss.probabilities(raw_score).sum(axis=1), 1.0, rtol=1e-15)
            if abs(score) <= 36.0 or loss.link != "log":  # the value itself may be beyond 1e308
                assert np.isfinite(loss.value(y, raw_score, NO_WEIGHT))


@pytest.mark.interpreted
def test_every_row_is_filled_by_any_number_of_threads(case):
    loss, y = case.loss(), case.targets(503)
    raw_score = raw_scores(loss, len(y))
    one, other = (derivatives_in_training(loss, y, raw_score, n_threads=n) for n in (1, 3))
    assert_array_equal(one, other)
    for own, exact in zip(one, loss.gradients(y, raw_score), strict=True):
        assert_allclose(own, exact, rtol=1e-6, atol=1e-7)


# --- start values and predictions ----------------------------------------------------------------


@pytest.mark.interpreted
@pytest.mark.parametrize("weighted", [False, True])
def test_the_start_is_the_best_constant(case, weighted):
    loss, y = case.loss(), case.targets(41)
    weight = np.random.default_rng(2).uniform(0.1, 3.0, len(y)) if weighted else NO_WEIGHT
    start = loss.start(y, weight)
    assert start.shape == (loss.n_outputs,)

    def slopes(scores):
        gradient, _ = loss.gradients(y, np.repeat(scores[:, np.newaxis], len(y), axis=1))
        return gradient @ (weight if weighted else np.ones(len(y)))

    step = 1e-9 * (1.0 + np.abs(start))
    if loss.link == "softmax":  # only differences count
        assert_allclose(slopes(start), 0.0, atol=1e-12)
    else:
        assert (slopes(start - step) <= 0).all()
        assert (slopes(start + step) >= 0).all()


@pytest.mark.interpreted
def test_predictions_are_what_raw_of_says(case):
    loss = case.loss()
    for prediction in (0.2, 0.7):
        raw_score = loss.raw_of(prediction)
        assert raw_score.shape == (loss.n_outputs,)
        expected = prediction
        if case.name == "binary:hinge":
            expected = float(prediction > 0.5)
        if case.task == "multiclass":
            expected = 1.0 / N_CLASSES
        assert_allclose(loss.predictions(raw_score[:, np.newaxis]), expected, rtol=1e-12)


@pytest.mark.interpreted
@pytest.mark.parametrize("name", WRONG)
def test_targets_that_a_loss_is_not_defined_for(name):
    (case,) = [own for own in CASES if own.name == name and not own.parameters]
    for target in WRONG[name]:
        y = case.targets(10)
        y[7] = target
        with pytest.raises(ValueError, match=rf"^y\[7\]={target:g}: objective='{name}' .*; \w+"):
            case.estimator().fit(np.zeros((10, 1)), y)


@pytest.mark.interpreted
def test_some_losses_have_no_wrong_targets():
    for case in CASES:
        if case.task == "regression" and case.name not in WRONG:
            case.loss().check_targets(np.array([-1e30, -1.5, 0.0, 1.5, 1e30]), "y")


def test_the_first_wrong_target_is_named_by_its_place():
    y = np.array([[1.0, 2.0], [np.nan, -3.0], [-4.0, 0.0]])
    with pytest.raises(ValueError, match=r"^y\[1, 1\]=-3: objective='own' needs targets >= 0; "):
        check_domain(y, NOT_NEGATIVE, "y", "own")


def test_a_tweedie_power_of_2_has_no_targets_of_0():
    y, X = np.array([1.0, 0.0, 2.0]), np.zeros((3, 1))
    XGBRegressorLite(objective="reg:tweedie").fit(X, y)
    with pytest.raises(ValueError, match=r"y\[1\]=0: objective='reg:tweedie' needs targets > 0"):
        XGBRegressorLite(objective="reg:tweedie", tweedie_variance_power=2).fit(X, y)


# --- whole fits ----------------------------------------------------------------------------------


def test_training_makes_the_loss_smaller_and_pickle_keeps_the_model(plain, data):
    X, y = data
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    model = plain.estimator(n_estimators=20, max_depth=3).fit(X, y, weight)
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.predict(X), model.predict(X))
    assert_array_equal(copy._scored(X)[1], model._scored(X)[1])
    loss, y = model._trained.loss, y.astype(float)
    start = np.repeat(model.model_.base_score, len(y)).reshape(-1, len(y))
    stages = [start, *(raw_score.copy() for _, raw_score in model._staged_scores(X, None))]
    values = np.array([loss.value(y, raw_score, weight) for raw_score in stages])
    assert (np.diff(values) < 0).mean() > 0.8
    if plain.task == "regression":
        # far enough that the predictions follow the targets
        assert np.corrcoef(np.log1p(y - y.min()), model.predict(X))[0, 1] > 0.5
    else:
        assert values[-1] < 0.3 * values[0]


def test_weight_2_is_the_row_twice(plain, data):
    X, y = data
    twice = np.random.default_rng(0).integers(1, 3, len(y))
    settings = {"n_estimators": 10, "max_depth": 4}
    one = plain.estimator(**settings).fit(X, y, twice.astype(float))
    other = plain.estimator(**settings).fit(np.repeat(X, twice, axis=0), np.repeat(y, twice))
    assert_allclose(one._scored(X)[1], other._scored(X)[1], rtol=1e-7, atol=1e-9)


def test_base_scores_that_are_no_predictions(plain, data):
    possible = {
        "count:poisson": (0, np.inf),
        "reg:gamma": (0, np.inf),
        "reg:tweedie": (0, np.inf),
        "reg:squaredlogerror": (-1, np.inf),
        "reg:logistic": (0, 1),
    }
    low, high = possible.get(plain.name, (0, 1) if plain.task == "binary" else (-np.inf, np.inf))
    for base_score in (-2.0, 0.0, 1.0):
        model = plain.estimator(n_estimators=1, base_score=base_score)
        if low < base_score < high:
            model.fit(*data)
        else:
            with pytest.raises(ValueError, match=rf"^base_score={base_score:g}\S*: "):
                model.fit(*data)


def test_early_stopping_with_the_default_metric(plain, data):
    X, y = data
    model = plain.estimator(n_estimators=30, early_stopping_rounds=5, random_state=0).fit(X, y)
    ((name, values),) = model.evals_result_["validation_0"].items()
    assert np.isfinite(values).all(), name
    assert model.n_estimators_ == model.best_iteration_ + 1


def test_models_are_the_same_on_any_number_of_threads(plain):
    X, y = np.random.default_rng(0).normal(size=(20_000, 2)), plain.targets(20_000)
    X[:, 0] += y
    settings = {"n_estimators": 2, "max_depth": 4}
    fits = [plain.estimator(n_jobs=n, **settings).fit(X, y) for n in (1, 2)]
    assert [model.fit_report_.n_threads for model in fits] == [1, 2]
    one, other = (model.model_ for model in fits)
    assert one.nodes.tobytes() == other.nodes.tobytes()
    assert one.base_score.tobytes() == other.base_score.tobytes()


def test_base_score_is_a_prediction(plain, data):
    X, y = data
    model = plain.estimator(n_estimators=1, base_score=0.7, learning_rate=1e-9).fit(X, y)
    expected = plain.loss().raw_of(0.7)
    assert_allclose(model._scored(X)[1], np.tile(expected[:, np.newaxis], len(y)), atol=1e-6)


def test_what_counts_rows_does_not_depend_on_the_unit_of_the_target(plain):
    loss, y = plain.loss(), plain.targets(400)
    if type(loss).unit is Loss.unit:
        assert loss.unit(y, NO_SCORES, NO_WEIGHT) == 1.0
        return
    X = np.column_stack([y, np.random.default_rng(0).normal(size=len(y))])
    # far from where the loss is the squared error: hessians are tiny, and yet leaves are split
    model = plain.estimator(n_estimators=3, max_depth=3).fit(X, 1e6 * y)
    # 400 hessians come to less than min_child_weight: not counted in the unit, nothing is split
    assert 0.0 < 400 * loss.unit(1e6 * y, NO_SCORES, NO_WEIGHT) < 1.0
    assert len(np.unique(model.predict(X))) > 2  # more than one split


def test_targets_that_are_not_known_have_no_say(plain):
    if plain.task != "regression":
        return
    y, X = plain.targets(200), np.random.default_rng(0).normal(size=(200, 3))
    both = np.column_stack([y, y])
    both[::3, 1] = np.nan
    settings = {"n_estimators": 5, "max_depth": 3, "reg_lambda": 0, "min_child_weight": 0}
    two = plain.estimator(**settings).fit(X, both).predict(X)
    known = ~np.isnan(both[:, 1])
    assert_allclose(two[:, 0], plain.estimator(**settings).fit(X, y).predict(X), rtol=1e-6)
    own = plain.estimator(**settings).fit(X[known], y[known])
    assert np.corrcoef(two[known, 1], own.predict(X[known]))[0, 1] > 0.99
