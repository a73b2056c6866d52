"""The parameters of the estimators; made by .ci/write_stub.py."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from sklboost.boosting.callbacks import TrainingCallback
from sklboost.estimators.parameters.groups import Parameters

class SurvivalParameters(
    Parameters,
):
    """The parameters of survival models."""

    ties: str
    aft_loss_distribution: str
    aft_loss_distribution_scale: float
    def __init__(
        self,
        *,
        preset: str | None = None,
        n_estimators: int | None = 100,
        learning_rate: float | None = 0.3,
        base_score: float | Sequence[float] | None = None,
        num_parallel_tree: int | None = 1,
        booster: str | None = "gbtree",
        rate_drop: float = 0.0,
        skip_drop: float = 0.0,
        one_drop: bool = False,
        sample_type: str = "uniform",
        normalize_type: str = "tree",
        objective: str | None = None,
        max_depth: int | None = 6,
        max_leaves: int | None = 0,
        grow_policy: str | None = "depthwise",
        max_bin: int | None = 256,
        reg_lambda: float | None = 1.0,
        reg_alpha: float | None = 0.0,
        gamma: float | None = 0.0,
        min_child_weight: float | None = 1.0,
        min_child_samples: int | None = 0,
        max_delta_step: float | None = 0.0,
        pruning: str = "post",
        ccp_alpha: float = 0.0,
        keep_pruned: bool = False,
        path_smooth: float = 0.0,
        extra_trees: bool = False,
        linear_tree: bool = False,
        linear_lambda: float = 1.0,
        max_cat_to_onehot: int | None = 4,
        max_cat_threshold: int | None = 64,
        cat_smooth: float = 2.0,
        multi_strategy: str | None = "one_output_per_tree",
        subsample: float | None = 1.0,
        sampling_method: str | None = "uniform",
        colsample_bytree: float | None = 1.0,
        colsample_bylevel: float | None = 1.0,
        colsample_bynode: float | None = 1.0,
        categorical_features: str | Collection[Any] | None = "from_dtype",
        enable_categorical: bool = True,
        unknown_category: str = "missing",
        missing: float | None = np.nan,
        monotone_constraints: Mapping[Any, int] | Collection[int] | str | None = None,
        interaction_constraints: Collection[Collection[Any]] | str | None = None,
        feature_weights: Mapping[Any, float] | Collection[float] | None = None,
        early_stopping_rounds: int | None = None,
        validation_fraction: float = 0.1,
        validation_split: str = "random",
        eval_metric: str | Callable[..., Any] | Sequence[str | Callable[..., Any]] | None = None,
        refit: bool = False,
        max_time: float | None = None,
        callbacks: Sequence[TrainingCallback] | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        verbose: int = 0,
        importance_type: str | None = "gain",
        ties: str = "breslow",
        aft_loss_distribution: str = "normal",
        aft_loss_distribution_scale: float = 1.0,
    ) -> None: ...
