"""The objectives that XGBoost and this package share, and where its files keep their parameters."""

from typing import NamedTuple


class SharedObjective(NamedTuple):
    """An objective of XGBoost that means the same here."""

    section: str = ""  # the key of its parameters in XGBoost's files; empty: it has none
    parameter: str = ""  # ours, of the same name there; empty: none
    is_list: bool = False  # whether there may be several values, such as ``[0.1,0.9]``
    written: dict[str, str] = {}  # noqa: RUF012, never modified


_OF_WEIGHTS = SharedObjective("reg_loss_param", written={"scale_pos_weight": "1"})

# By the task here, then by the name, which is the same in both. Raw scores of reg:squaredlogerror
# are predictions there and logarithms here, so it is another objective.
SHARED: dict[str, dict[str, SharedObjective]] = {
    "regression": {
        "reg:squarederror": _OF_WEIGHTS,
        "reg:absoluteerror": SharedObjective(),
        "reg:quantileerror": SharedObjective("quantile_loss_param", "quantile_alpha", True),
        "reg:pseudohubererror": SharedObjective("pseudo_huber_param", "huber_slope"),
        "reg:logistic": _OF_WEIGHTS,
        "reg:gamma": _OF_WEIGHTS,
        "reg:tweedie": SharedObjective("tweedie_regression_param", "tweedie_variance_power"),
        "count:poisson": SharedObjective(
            "poisson_regression_param", written={"max_delta_step": "0.7"}
        ),
    },
    "binary": {"binary:logistic": _OF_WEIGHTS, "binary:hinge": SharedObjective()},
    "multiclass": {"multi:softprob": SharedObjective("softmax_multiclass_param")},
    # what only training reads is left at its default
    "ranking": dict.fromkeys(
        ("rank:ndcg", "rank:map", "rank:pairwise"), SharedObjective("lambdarank_param")
    ),
}
SHARED["multilabel"] = SHARED["binary"]

# Objectives whose raw scores have the unit of predictions, the logarithm of it, or log-odds.
LOG = {"reg:gamma", "reg:tweedie", "count:poisson"}
LOG_ODDS = {"reg:logistic", "binary:logistic"}
