"""What all displays have in common."""

import inspect

import pytest
from matplotlib import pyplot as plt

from sklboost.displays import (
    CalibrationDisplay,
    DerivationDisplay,
    ImportanceDisplay,
    LearningCurveDisplay,
    SplitValuesDisplay,
    TreeDisplay,
    plot_calibration,
    plot_derivation,
    plot_importance,
    plot_learning_curve,
    plot_split_values,
    plot_tree,
)

FUNCTIONS = {
    plot_calibration: CalibrationDisplay,
    plot_derivation: DerivationDisplay,
    plot_importance: ImportanceDisplay,
    plot_learning_curve: LearningCurveDisplay,
    plot_split_values: SplitValuesDisplay,
    plot_tree: TreeDisplay,
}
REGRESSION = [function for function in FUNCTIONS if function is not plot_calibration]


@pytest.mark.parametrize("function", REGRESSION, ids=lambda own: own.__name__)
def test_a_display_is_drawn_again_in_a_new_figure_or_where_the_user_wants(function, regressor):
    own = {plot_split_values: dict(feature="bmi"), plot_tree: dict(max_depth=1)}
    settings = own.get(function, {})
    display = FUNCTIONS[function].from_estimator(regressor, **settings)
    first, n_artists = display.figure_, len(display.ax_.get_children())
    assert display.ax_.figure is first
    assert display.plot() is display
    assert display.figure_ is not first
    assert len(display.ax_.get_children()) == n_artists
    _, ax = plt.subplots()
    assert display.plot(ax).ax_ is ax
    assert display.figure_ is ax.figure
    _, ax = plt.subplots()
    assert function(regressor, **settings, ax=ax) is ax
    assert len(ax.get_children()) == n_artists


@pytest.mark.parametrize(("function", "display"), FUNCTIONS.items(), ids=lambda own: own.__name__)
def test_functions_show_their_options_with_defaults_and_explain_each(function, display):
    shown = inspect.signature(function).parameters
    for name, option in inspect.signature(display.from_estimator).parameters.items():
        if name == "importance_type":  # as the function of XGBoost
            option = option.replace(default="weight")
        assert shown[name] == option
    is_dict = [option.kind is option.VAR_KEYWORD for option in shown.values()]
    assert sum(is_dict) == (function is plot_importance)  # the style of its bars
    described = inspect.getdoc(function)
    sections = ["Parameters", "Returns", "Raises"]
    assert sorted(sections, key=described.index) == sections
    for name in shown:
        stars = "**" if shown[name].kind is inspect.Parameter.VAR_KEYWORD else ""
        assert (
            f"{stars}{name} :" in described
            or f"{name}, " in described
            or f", {name} :" in described
        )
    assert "matplotlib.axes.Axes\n\nRaises" in described


def test_a_misspelt_option_is_refused(regressor):
    for function in (plot_derivation, plot_learning_curve, plot_tree):
        with pytest.raises(TypeError, match="unexpected keyword argument 'max_dept'"):
            function(regressor, max_dept=3)


def test_docstrings_of_a_users_display_stay_as_they_are():
    class Mine(CalibrationDisplay):
        """Mine.

        Examples
        --------
        None.
        """

        @classmethod
        def from_nothing(cls, ax=None):
            """Draw nothing."""

    assert Mine.from_nothing.__doc__ == "Draw nothing."
    assert "plot_mine" not in Mine.__doc__
