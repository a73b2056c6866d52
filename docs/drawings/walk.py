"""The walk of X and y: from `fit` down to the addition of a row, and back to predictions.

The stops are the functions at which the data takes another form or goes down a floor. That a fit
and a prediction call them in this order is tested (tests/test_architecture_page.py).
"""

from typing import NamedTuple

from svg import BOX, ORANGE, ORANGE_BOX, PALE, TEAL, TEAL_BOX, Drawing


class Stop(NamedTuple):
    """A function that a fit or a prediction calls, and what the data is there."""

    file: str  # in sklboost/
    function: str
    data: str


STOPS = (
    Stop("estimators/base.py", "BaseBooster.fit", "X, y as the user has them"),
    Stop("estimators/input/rows.py", "training_rows", "Rows: checked values, targets, weights"),
    Stop("estimators/fit/fitting.py", "train", "FitTask: all that the fit was given, checked"),
    Stop("data/features.py", "training_bins", "TrainingBins and BinCuts"),
    Stop("boosting/training.py", "Training.run", "BoostingTask: bins, targets, loss, settings"),
    Stop("boosting/rounds.py", "boost_rounds", "Derivatives: gradient and hessian per row"),
    Stop("tree/core/growing.py", "grow_tree", "Gradients: one packed integer per row"),
    Stop("tree/core/histogram.py", "build_histograms", "a histogram for each node"),
    Stop("tree/core/histogram.py", "add_rows", "cell += packed gradient"),
    Stop("tree/predict/assembly.py", "assemble_model", "Model: the finished trees"),
    Stop("estimators/classifier.py", "XGBClassifierLite.predict_proba", "X as the user has it"),
    Stop("tree/predict/prediction.py", "add_trees", "raw scores: sums of leaf values"),
)
FIRST_OF_PREDICTION = 10

WIDTH, ROW, TOP = 740, 52, 44
BOX_LEFT, BOX_WIDTH, HIGH = 24, 400, 38
COLORS = {"estimators": (BOX, PALE), "data": (ORANGE_BOX, ORANGE), "boosting": (BOX, PALE)}


def draw() -> str:
    drawing = Drawing(
        WIDTH, TOP + ROW * len(STOPS) + 24, "The walk of X and y, from fit to predict_proba"
    )
    middle = BOX_LEFT + BOX_WIDTH / 2
    top = TOP
    for number, stop in enumerate(STOPS):
        if number == FIRST_OF_PREDICTION:
            top += 30
        if number in (0, FIRST_OF_PREDICTION):
            what = "model.fit(X, y)" if number == 0 else "model.predict_proba(X)"
            drawing.text(BOX_LEFT, top - 10, what, anchor="start", bold=True)
        else:
            drawing.arrow([(middle, top - ROW + HIGH), (middle, top)])
        fill, edge = COLORS.get(stop.file.partition("/")[0], (TEAL_BOX, TEAL))
        drawing.box(BOX_LEFT, top, BOX_WIDTH, HIGH, fill, edge)
        name = stop.function.rpartition(".")[2]
        drawing.text(BOX_LEFT + 10, top + 24, name, anchor="start", bold=True)
        right = BOX_LEFT + BOX_WIDTH - 10
        drawing.text(right, top + 24, stop.file, anchor="end", color=PALE, size=12)
        drawing.text(BOX_LEFT + BOX_WIDTH + 16, top + 24, stop.data, anchor="start", size=13)
        top += ROW
    return str(drawing)
