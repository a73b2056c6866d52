"""What all displays have in common."""

import pytest
from matplotlib import pyplot as plt

from sklboost.displays import (
    DerivationDisplay,
    ImportanceDisplay,
    LearningCurveDisplay,
    SplitValuesDisplay,
    TreeDisplay,
)

DISPLAYS = {
    "derivation": DerivationDisplay.from_estimator,
    "importance": ImportanceDisplay.from_estimator,
    "learning curve": LearningCurveDisplay.from_estimator,
    "split values": lambda model: SplitValuesDisplay.from_estimator(model, "bmi"),
    "tree": TreeDisplay.from_estimator,
}


@pytest.mark.parametrize("draw", DISPLAYS.values(), ids=DISPLAYS)
def test_a_display_is_drawn_again_in_a_new_figure_or_where_the_user_wants(draw, regressor):
    display = draw(regressor)
    first, n_artists = display.figure_, len(display.ax_.get_children())
    assert display.ax_.figure is first
    assert display.plot() is display
    assert display.figure_ is not first
    assert len(display.ax_.get_children()) == n_artists
    _, ax = plt.subplots()
    assert display.plot(ax).ax_ is ax
    assert display.figure_ is ax.figure
