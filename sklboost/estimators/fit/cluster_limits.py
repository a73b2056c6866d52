"""What does not go with features on a cluster, refused by name."""

from sklboost.estimators.parameters.groups import Parameters
from sklboost.objectives.loss import Loss


def check_cluster_parameters(parameters: Parameters) -> None:
    """Raise ValueError for parameters that do not go with features on a cluster."""
    refused = {
        "linear_tree=True": parameters.linear_tree,
        "booster='dart'": parameters.booster == "dart",
        f"preset={parameters.preset!r}": parameters.preset is not None,
    }
    for what, is_asked_for in refused.items():
        if is_asked_for:
            raise _refusal(what, "leave it out")


def check_cluster_loss(loss: Loss) -> None:
    """Raise ValueError for a loss whose derivatives, or leaves, need all rows in one place."""
    what = ""
    if len(loss.renewal) > 0:
        what = "its leaves are quantiles of the residuals of all their rows"
    elif type(loss).prepare is not Loss.prepare:
        what = "the derivatives of a row depend on other rows"
    elif loss.block is None or loss.row_derivatives is not None:
        what = "it is not one of this package"
    if what:
        raise _refusal(f"objective={loss.name!r}, where {what},", "choose another one")


def _refusal(what: str, remedy: str) -> ValueError:
    not_yet = "does not go with Dask collections yet"
    return ValueError(f"{what} {not_yet}: {remedy}, or pass X.compute()")
