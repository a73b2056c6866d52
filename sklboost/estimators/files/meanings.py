"""What a fitted estimator of ours means, in the words that all libraries share."""

from typing import Any

from sklboost.boosting.settings import STRATEGIES
from sklboost.estimators.predict.fitted_model import FittedModel
from sklboost.files.meaning import Meaning
from sklboost.objectives.loss import RowLoss
from sklboost.objectives.registry import is_built_in


def meaning_of(fitted: FittedModel) -> Meaning:
    """Return what the features and raw scores of a fitted estimator mean.

    Parameters are read off the model: those of the estimator may have changed since.
    """
    model, loss, targets = fitted.model, fitted.loss, fitted.targets
    settings = model.params_of(0)
    known: dict[str, Any] = {
        "learning_rate": settings.learning_rate * settings.num_parallel_tree,
        "reg_lambda": settings.reg_lambda,
        "reg_alpha": settings.reg_alpha,
        "num_parallel_tree": settings.num_parallel_tree,
        "multi_strategy": STRATEGIES[settings.multi_output],
        "booster": "dart" if fitted.n_dart_rounds > 0 else "gbtree",
    }
    if isinstance(loss, RowLoss) and loss.parameter:
        known[loss.parameter] = loss.parameters[:: targets.size].tolist()
    return Meaning(
        task=targets.task,
        objective=loss.name if is_built_in(loss) else "",
        base_score=model.base_score + fitted.shift,
        n_targets=targets.size if targets.task == "regression" else 1,
        n_features=model.n_features,
        feature_names=None if fitted.features.names is None else fitted.feature_names,
        encodings=fitted.encodings,
        classes=targets.classes,
        missing=fitted.features.missing,
        parameters=known,
        best_iteration=fitted.state.get("best_iteration_"),
        chosen_by=loss.chosen_by,
    )
