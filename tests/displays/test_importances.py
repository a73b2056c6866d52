import inspect
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import xgboost
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgba
from sklearn.exceptions import NotFittedError

import sklboost
from sklboost import XGBRegressorLite
from sklboost.displays import ImportanceDisplay, plot_importance
from sklboost.displays.figures import BLUE, GREY
from sklboost.inspection.importances import IMPORTANCE_TYPES, ValidationImportances
from tests.small_models import small


def bars(display):
    """Return the bars from the top down: name -> length."""
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    lengths = [bar.get_width() for bar in display.bars_]
    return dict(reversed(list(zip(names, lengths, strict=True))))


def validation():
    return ValidationImportances(
        ["age", "noise", "size"],
        importances=np.array([[5.0, 7.0], [0.5, -0.5], [2.0, 1.4]]),
        shadow_importances=np.array([[0.5, 0.0], [1.0, -3.0], [0.0, -1.0]]),
        method="permutation",
    )


@pytest.mark.parametrize("importance_type", IMPORTANCE_TYPES)
def test_bars_are_the_scores_the_largest_at_the_top(regressor, importance_type):
    display = ImportanceDisplay.from_estimator(regressor, importance_type=importance_type)
    scores = regressor.get_score(importance_type)
    assert bars(display) == pytest.approx(scores)
    assert list(bars(display).values()) == sorted(scores.values(), reverse=True)
    words = {"weight": "number", "gain": "average gain", "total_gain": "total gain"}
    assert words.get(importance_type, "cover") in display.ax_.get_xlabel()


def test_the_most_important_ones_by_the_kind_of_the_estimator(regressor):
    scores = regressor.get_score("gain")
    assert bars(ImportanceDisplay.from_estimator(regressor)) == scores
    display = ImportanceDisplay.from_estimator(regressor, max_num_features=3)
    assert list(bars(display)) == sorted(scores, key=scores.get, reverse=True)[:3]


def test_validation_importances_and_the_best_shadow():
    display = ImportanceDisplay.from_validation(validation())
    assert bars(display) == {"age": 6.0, "size": pytest.approx(1.7), "noise": 0.0}
    colours = [bar.get_facecolor() for bar in display.bars_]
    assert colours == [to_rgba(GREY), to_rgba(BLUE), to_rgba(BLUE)]
    (line,) = [own for own in display.ax_.lines if own.get_linestyle() == "--"]
    assert line.get_xdata()[0] == 1.0
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts == ["0 ± 0.5", "1.7 ± 0.3", "6 ± 1"]


def test_names_of_many_features_do_not_overlap():
    random = np.random.default_rng(0)
    names = [f"measurement number {i} of the left sensor in $ or °C" for i in range(40)]
    X = pd.DataFrame(random.normal(size=(300, 40)), columns=names)
    model = small(XGBRegressorLite, n_estimators=30).fit(X, X.sum(axis=1))
    for ax, touch in ((None, 0), (plt.subplots()[1], 1)):  # small axes of the user, too
        display = ImportanceDisplay.from_estimator(model, importance_type="weight", ax=ax)
        display.figure_.canvas.draw()
        labels = display.ax_.get_yticklabels()
        assert len(display.bars_) == len(labels) > 35
        assert len({label.get_text() for label in labels}) == len(labels)
        extents = [label.get_window_extent() for label in labels]
        for below, above in pairwise(extents):
            assert below.y1 < above.y0 + touch
        if ax is None:
            assert min(own.x0 for own in extents) >= 0
            edge = display.ax_.get_window_extent().x1
            assert max(own.get_window_extent().x1 for own in display.ax_.texts) <= edge


def test_the_function_takes_either(regressor):
    assert len(plot_importance(regressor, max_num_features=2).patches) == 2
    assert len(plot_importance(validation(), max_num_features=1).patches) == 1


def test_numbers_beside_bars(regressor):
    display = ImportanceDisplay.from_estimator(regressor, show_values=False)
    assert len(display.ax_.texts) == 0
    display = ImportanceDisplay.from_estimator(regressor, values_format="{v:.0f} units")
    longest = max(regressor.get_score("gain").values())
    assert display.ax_.texts[-1].get_text() == f"{longest:.0f} units"
    display = ImportanceDisplay.from_validation(validation(), values_format="{v:.2f}")
    assert display.ax_.texts[-1].get_text() == "6.00 ± 1.00"
    assert not ImportanceDisplay.from_validation(validation(), show_values=False).ax_.texts


def test_calls_that_xgboost_takes(regressor):
    ax = sklboost.plot_importance(
        regressor,
        importance_type="weight",
        max_num_features=4,
        height=0.5,
        xlim=(0, 500),
        ylim=(-1, 4),
        title="Feature importance",
        xlabel="Importance score",
        ylabel="Features",
        grid=True,
        show_values=True,
        values_format="{v:.1f}",
        color="green",
    )
    assert (ax.get_xlim(), ax.get_ylim()) == ((0, 500), (-1, 4))
    texts = [ax.get_title(), ax.get_xlabel(), ax.get_ylabel()]
    assert texts == ["Feature importance", "Importance score", "Features"]
    assert ax.xaxis.get_gridlines()[0].get_visible()
    assert [bar.get_height() for bar in ax.patches] == [0.5] * 4
    assert {bar.get_facecolor() for bar in ax.patches} == {to_rgba("green")}
    assert plot_importance(regressor, xlabel=None).get_xlabel() == "number of splits"
    assert plot_importance(regressor, title=None).get_title() == ""
    assert plot_importance(validation()).get_xlabel() not in ("", "Importance score")


def test_defaults_and_texts_are_those_of_xgboost(regressor):
    ours, theirs = (
        inspect.signature(function).parameters
        for function in (sklboost.plot_importance, xgboost.plot_importance)
    )
    # how it looks: thicker bars, rounded numbers
    same = set(theirs) & set(ours) - {"values_format", "kwargs"}
    assert set(theirs) - same == {"booster", "height", "values_format", "kwargs"}
    for name in same:
        assert ours[name].default == theirs[name].default, name
    axes = [plot_importance(regressor), xgboost.plot_importance(regressor.to_xgboost())]
    for texts in zip(
        *([ax.get_title(), ax.get_xlabel(), ax.get_ylabel()] for ax in axes), strict=True
    ):
        assert texts[0] == texts[1] != ""
    bars = [
        {
            label.get_text(): bar.get_width()
            for label, bar in zip(ax.get_yticklabels(), ax.patches, strict=True)
        }
        for ax in axes
    ]
    assert bars[0] == bars[1]
    assert all(ax.xaxis.get_gridlines()[0].get_visible() for ax in axes)


def test_errors(regressor):
    with pytest.raises(
        ValueError, match=r"^importance_type='gain': validation importances are of "
    ):
        plot_importance(validation(), importance_type="gain")
    with pytest.raises(ValueError, match=r"^max_num_features=0: it must be None or an integer >= "):
        plot_importance(regressor, max_num_features=0)
    assert plot_importance(regressor, xlim=np.array([0, 9])).get_xlim() == (0, 9)
    for name in ("xlim", "ylim"):
        with pytest.raises(ValueError, match=f"^{name}=3: it must be None or a pair of numbers"):
            plot_importance(regressor, **{name: 3})
    with pytest.raises(
        ValueError, match=r"^fmap='names.txt': no file of feature names is read; fi"
    ):
        plot_importance(regressor, fmap="names.txt")
    with pytest.raises(NotFittedError):
        plot_importance(XGBRegressorLite())
    with pytest.raises(ValueError, match="no tree has a split"):
        plot_importance(small(XGBRegressorLite).fit(np.zeros((5, 1)), np.arange(5.0)))
