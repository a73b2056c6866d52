"""Other libraries' names of our metrics.

A metric that was asked for by such a name is called by it in ``evals_result_``. The names of
scikit-learn's scorers are not among them: those are scorers, greater is better.
"""

_LIGHTGBM = {
    "l1": "mae",
    "l2": "mse",
    "l2_root": "rmse",
    "poisson": "poisson-nloglik",
    "gamma": "gamma-nloglik",
    "gamma_deviance": "gamma-deviance",
    "tweedie": "tweedie-nloglik",
    "binary_logloss": "logloss",
    "binary_error": "error",
    "cross_entropy": "logloss",
    "xentropy": "logloss",
    "kldiv": "kullback_leibler",
    "multi_logloss": "mlogloss",
    "multi_error": "merror",
}

_SCIKIT_LEARN = {
    "mean_squared_error": "mse",
    "root_mean_squared_error": "rmse",
    "root_mean_squared_log_error": "rmsle",
    "mean_absolute_error": "mae",
    "mean_absolute_percentage_error": "mape",
    "mean_pinball_loss": "quantile",
    "mean_poisson_deviance": "poisson-deviance",
    "mean_gamma_deviance": "gamma-deviance",
    "mean_tweedie_deviance": "tweedie-deviance",
    "r2_score": "r2",
    "roc_auc_score": "auc",
    "average_precision_score": "aucpr",
    "brier_score_loss": "brier",
    "hamming_loss": "error",
}

# A name may stand for one metric of each task.
ALIASES: dict[str, tuple[str, ...]] = {
    **{name: (own,) for name, own in (_LIGHTGBM | _SCIKIT_LEARN).items()},
    "log_loss": ("logloss", "mlogloss"),
    "zero_one_loss": ("error", "merror"),
}


def names_for(name: str) -> tuple[str, ...]:
    """Give the names of ours that a name may stand for."""
    return ALIASES.get(name, (name,))
