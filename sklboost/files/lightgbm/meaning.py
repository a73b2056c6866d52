"""What the header and the parameters of a text model of LightGBM mean."""

from typing import Any, NamedTuple

import numpy as np

from sklboost.files.sections import Section

_VERSIONS = ("v2", "v3", "v4")
_MOST = 2**31 - 1


class Objective(NamedTuple):
    """A loss of LightGBM that is here, too."""

    name: str  # ours
    task: str = "regression"
    parameter: tuple[str, str] | None = None  # the names of its parameter there and here
    # whether training starts where the gradients of all rows add up to 0
    starts_at_root: bool = False


OBJECTIVES = {
    "regression": Objective("reg:squarederror", starts_at_root=True),
    "regression_l1": Objective("reg:absoluteerror"),
    "huber": Objective("reg:huber", parameter=("alpha", "huber_slope")),
    "fair": Objective("reg:fair", parameter=("fair_c", "fair_c")),
    "quantile": Objective("reg:quantileerror", parameter=("alpha", "quantile_alpha")),
    "mape": Objective("reg:mape"),
    "poisson": Objective("count:poisson", starts_at_root=True),
    "gamma": Objective("reg:gamma", starts_at_root=True),
    "tweedie": Objective(
        "reg:tweedie",
        parameter=("tweedie_variance_power", "tweedie_variance_power"),
        starts_at_root=True,
    ),
    "cross_entropy": Objective("reg:logistic", starts_at_root=True),
    "binary": Objective("binary:logistic", "binary", starts_at_root=True),
    "multiclass": Objective("multi:softprob", "multiclass", starts_at_root=True),
    "multiclassova": Objective("multi:onevsrest", "multiclass", starts_at_root=True),
}

# LightGBM's names of parameters that are taken over as they are, and ours.
_SAME = {
    "learning_rate": "learning_rate",
    "lambda_l2": "reg_lambda",
    "lambda_l1": "reg_alpha",
    "min_gain_to_split": "gamma",
    "min_sum_hessian_in_leaf": "min_child_weight",
    "path_smooth": "path_smooth",
    "feature_fraction": "colsample_bytree",
    "feature_fraction_bynode": "colsample_bynode",
    "linear_lambda": "linear_lambda",
}
_INTEGERS = {
    "num_leaves": "max_leaves",
    "max_depth": "max_depth",
    "min_data_in_leaf": "min_child_samples",
}
_OF_DART = {"drop_rate": "rate_drop", "skip_drop": "skip_drop"}
# Of what versions before 4 do not write, or files that are not written by LightGBM.
_DEFAULTS = {
    **{"boosting": "gbdt", "num_leaves": "31", "max_depth": "-1", "max_delta_step": "0"},
    **{"bagging_freq": "0", "bagging_fraction": "1", "extra_trees": "0"},
    **{"min_data_in_leaf": "20"},
    **{"drop_rate": "0.1", "skip_drop": "0.5", "monotone_constraints": ""},
}


class Header(NamedTuple):
    """What the header of a text model says."""

    objective: Objective
    n_outputs: int
    sigmoid: float  # what log-odds are, in raw scores; 1 for other losses
    is_forest: bool  # whether raw scores are the mean of the rounds
    names: list[str] | None  # of the features; None if the user gave none
    infos: list[str]  # of the features: ``[least:most]``, the categories ``2:0:1``, or ``none``


def read_header(header: Section) -> Header:
    """Read the header.

    Raises
    ------
    ModelFileError
        If something is missing or makes no sense.
    """
    header["version"].text(_VERSIONS)
    if header.get("objective") is None:
        header.fail("has no objective, so it was the user's own: what raw scores mean is not known")
    words = header["objective"].text().split()
    if not words or words[0] not in OBJECTIVES:
        header["objective"].text(OBJECTIVES)
    if "sqrt" in words:
        header["objective"].fail("reg_sqrt: predictions are squares of raw scores, unknown here")
    objective = OBJECTIVES[words[0]]
    given = dict(word.partition(":")[::2] for word in words[1:])
    sigmoid = float_of(Section(given.get("sigmoid", "1"), f"{header.place}.objective sigmoid"))
    if sigmoid == 0.0:
        header["objective"].fail("sigmoid 0: it must be a positive number")
    n_outputs = integer_of(header["num_tree_per_iteration"], 1)
    n_classes = integer_of(header["num_class"], 1)
    if n_outputs != n_classes or (n_outputs > 1) != (objective.task == "multiclass"):
        header.fail(
            f"objective {words[0]!r} with {n_classes} class(es) and {n_outputs} tree(s) a round: "
            "it must be one of both, or for more classes more than one, and as many of each"
        )
    if n_outputs == 2:
        header.fail(
            f"objective {words[0]!r} with two classes, which have one raw score here: "
            "train it with 'binary'"
        )
    names, infos = (header[key].text().split(" ") for key in ("feature_names", "feature_infos"))
    n_features = integer_of(header["max_feature_idx"], 0) + 1
    for key, listed in (("feature_names", names), ("feature_infos", infos)):
        if len(listed) != n_features:
            header[key].fail(f"has {len(listed)} features, and max_feature_idx says {n_features}")
    has_names = names != [f"Column_{i}" for i in range(n_features)]
    is_forest = header.get("average_output") is not None
    return Header(objective, n_outputs, sigmoid, is_forest, names if has_names else None, infos)


def read_parameters(parameters: Section, objective: Objective) -> dict[str, Any]:
    """Return the parameters of the training as ours; empty if the file has none."""
    if not parameters.value:
        return {}
    parameters = Section({**_DEFAULTS, **parameters.value}, parameters.place)
    there = {**_SAME, **dict(filter(None, [objective.parameter]))}
    found: dict[str, Any] = {
        ours: float_of(parameters[theirs])
        for theirs, ours in there.items()
        if theirs in parameters.value
    }
    for theirs, ours in _INTEGERS.items():
        found[ours] = max(0, integer_of(parameters[theirs], -_MOST))
    found["max_delta_step"] = max(0.0, float_of(parameters["max_delta_step"], -np.inf))
    found["extra_trees"] = integer_of(parameters["extra_trees"], 0) == 1
    if parameters["boosting"].text() == "dart":
        found["booster"] = "dart"
        found |= {ours: float_of(parameters[theirs]) for theirs, ours in _OF_DART.items()}
    if integer_of(parameters["bagging_freq"], 0) > 0:
        found["subsample"] = float_of(parameters["bagging_fraction"])
    signs = parameters["monotone_constraints"]
    if signs.text():
        words = signs.text().split(",")
        found["monotone_constraints"] = [integer_of(Section(w, signs.place), -1) for w in words]
    return {**found, "grow_policy": "lossguide", "pruning": "pre"}


def integer_of(section: Section, low: int) -> int:
    """Return the integer that a text is."""
    try:
        number = int(section.text())
    except ValueError:
        number = low - 1
    if not low <= number <= _MOST:
        section.fail(f"must be an integer from {low} to {_MOST}, and is {section.value[:40]!r}")
    return number


def float_of(section: Section, low: float = 0.0) -> float:
    """Return the number that a text is: finite, and at least `low`."""
    try:
        number = float(section.text())
    except ValueError:
        number = np.nan
    if not low <= number < np.inf:
        section.fail(f"must be a finite number >= {low:g}, and is {section.value[:40]!r}")
    return number
