"""What the attributes of fitted estimators are, of those that several estimators have.

An estimator's docstring lists its attributes. Of these it has the name only, and
:func:`~sklboost.estimators.parameters.about.documented` the rest from here.
"""

# Name -> type and text.
ATTRIBUTES = {
    "n_features_in_": ("int", "Number of features at fit."),
    "feature_names_in_": (
        "ndarray of str, shape (n_features,)",
        "Names of the features, where `X` had names that are all strings.",
    ),
    "categories_": (
        "dict of str or int to ndarray",
        "Where there are categories: the levels of each, by name or number.",
    ),
    "model_": ("Model", "The trees, as :class:`sklboost.engine.model.Model`."),
    "n_estimators_": (
        "int",
        """
        Rounds of the model: fewer than `n_estimators` if training stopped early, more if it
        continued another model.
        """,
    ),
    "stop_reason_": (
        "str",
        """
        Why training ended: ``"completed"``, ``"early_stopping"`` (a callback of the user's
        included), ``"max_time"`` or ``"interrupted"`` (Ctrl-C).
        """,
    ),
    "best_iteration_": (
        "int",
        """
        The best round, from 0, as in XGBoost; the last of the model. Only with early stopping.
        """,
    ),
    "best_score_": ("float", "The metric at that round. Only with early stopping."),
    "evals_result_": (
        "dict",
        """
        ``{"validation_0": {"logloss": [0.61, 0.55]}}``: a value for each round done.
        """,
    ),
    "fit_report_": (
        "FitReport",
        """
        Time by phase, rows, bins, trees, leaves, pruned splits, constant features, threads.
        """,
    ),
}
