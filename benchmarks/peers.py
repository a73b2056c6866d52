"""The libraries: the same settings, spelt for each of them, and a fit that is timed and judged.

Everything that makes two libraries differ in what they compute is set or explained here. No
library stops early, subsamples, or prints. Libraries are imported when first used, so that
start-up can be measured and a missing peer does not matter.
"""

import contextlib
import gc
import importlib
import importlib.util
import math
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Settings(NamedTuple):
    """What every library is asked for, in XGBoost's words."""

    n_estimators: int = 100
    learning_rate: float = 0.1
    max_depth: int = 6  # 0: no limit, for lossguide
    max_bin: int = 256
    reg_lambda: float = 1.0
    min_child_weight: float = 1.0
    grow_policy: str = "depthwise"  # or "lossguide": always the leaf of largest gain
    max_leaves: int = 0  # for lossguide; 0: no limit but the depth


class Library(NamedTuple):
    """Where a library's two estimators are, and how it spells `Settings`."""

    module: str
    regressor: str
    classifier: str
    parameters: Callable  # (settings, task) -> dict
    threads: str | None  # the constructor's parameter; None: none, the OpenMP pool is limited
    seed: str = "random_state"


def _sklboost(s, task):
    return {
        "n_estimators": s.n_estimators,
        "learning_rate": s.learning_rate,
        "max_depth": s.max_depth,
        "max_leaves": s.max_leaves,
        "grow_policy": s.grow_policy,
        "max_bin": s.max_bin,  # of present values; missing ones have a bin of their own
        "reg_lambda": s.reg_lambda,
        "reg_alpha": 0.0,
        "gamma": 0.0,
        "min_child_weight": s.min_child_weight,
        "pruning": "post",  # with gamma = 0: a split is made where its gain is positive, as XGBoost
        "base_score": None,  # boosting starts from the mean / the log-odds of the prior
        "verbose": 0,
    }


def _xgboost(s, task):
    return {
        "tree_method": "hist",
        "n_estimators": s.n_estimators,
        "learning_rate": s.learning_rate,
        "max_depth": s.max_depth,
        "max_leaves": s.max_leaves,
        "grow_policy": s.grow_policy,
        "max_bin": s.max_bin,
        "reg_lambda": s.reg_lambda,
        "reg_alpha": 0.0,
        "gamma": 0.0,
        "min_child_weight": s.min_child_weight,
        "base_score": None,  # estimated from the target since XGBoost 2
        "verbosity": 0,
    }


def _lightgbm(s, task):
    return {
        "n_estimators": s.n_estimators,
        "learning_rate": s.learning_rate,
        "max_depth": s.max_depth or -1,
        # It grows the leaf of largest gain in any case. Where only the depth limits a tree, that
        # gives the depth-wise tree: as many leaves as the depth has room for never bind.
        "num_leaves": s.max_leaves or 2**s.max_depth,
        "max_bin": min(s.max_bin, 255),  # its default; one byte a bin, that of NaN included
        "min_data_in_bin": 1,  # its default, 3, would merge rare values that the others keep apart
        "reg_lambda": s.reg_lambda,
        "reg_alpha": 0.0,
        "min_split_gain": 0.0,
        "min_child_weight": s.min_child_weight,  # its min_sum_hessian_in_leaf
        "min_child_samples": 0,  # its own limit on rows, which XGBoost has not, off
        "boost_from_average": True,  # its default
        "verbosity": -1,
        # Left as users get them: the trial that picks row-wise or column-wise histograms, and
        # feature bundling.
    }


def _lightgbm_quantized(s, task):
    return _lightgbm(s, task) | {
        "use_quantized_grad": True,  # gradients in a few integer levels: faster, slightly different
        "quant_train_renew_leaf": True,  # leaf values from exact gradients, as its docs advise
    }


def _catboost(s, task):
    return {
        "iterations": s.n_estimators,
        "learning_rate": s.learning_rate,
        **_catboost_growth(s),
        "border_count": min(s.max_bin, 256) - 2,  # its default for 256: 254 borders, 255 bins
        "l2_leaf_reg": s.reg_lambda,  # with unit weights its scaling of l2 is one
        "min_data_in_leaf": _rows_of(s.min_child_weight, task),
        "score_function": "L2",  # nearest to the gain; the default, cosine, is not
        "random_strength": 0.0,  # no noise on the scores
        "bootstrap_type": "No",  # no row sampling
        "boosting_type": "Plain",  # no ordered boosting
        "leaf_estimation_method": "Newton",
        "leaf_estimation_iterations": 1,  # one Newton step a leaf, as everyone else
        "boost_from_average": task != "multiclass",  # a start value; not implemented for softmax
        "allow_writing_files": False,
        "logging_level": "Silent",
        # Not made equal: splits are scored with first derivatives only, min_child_weight does not
        # exist, softmax trees are vector-valued (one tree a round, not one a class), and depthwise
        # is less tuned in it than its symmetric trees.
    }


def _catboost_growth(s):
    # Ordinary trees; its default, symmetric ones, is another model.
    if s.grow_policy == "depthwise":
        return {"depth": s.max_depth, "grow_policy": "Depthwise"}
    # 16 is the deepest it can; the others have no limit where max_leaves is one.
    return {"depth": s.max_depth or 16, "grow_policy": "Lossguide", "max_leaves": s.max_leaves}


def _catboost_symmetric(s, task):
    if s.grow_policy != "depthwise":
        raise ValueError(
            f"grow_policy={s.grow_policy!r}: catboost_symmetric grows depthwise only; leave it out"
        )
    parameters = _catboost(s, task)
    del parameters["min_data_in_leaf"]  # symmetric trees refuse it
    return parameters | {"grow_policy": "SymmetricTree", "score_function": "Cosine"}


def _hist_gb(s, task):
    return {
        "max_iter": s.n_estimators,
        "learning_rate": s.learning_rate,
        "max_depth": s.max_depth or None,
        # It grows the leaf of largest gain in any case, as LightGBM. Its default, 31, would bind.
        "max_leaf_nodes": s.max_leaves or None,
        "max_bins": min(s.max_bin, 255),  # its limit; the 256th is for missing values
        "l2_regularization": s.reg_lambda,
        "min_samples_leaf": _rows_of(s.min_child_weight, task),
        "categorical_features": None,
        "early_stopping": False,  # its default, "auto", stops early above 10,000 rows
        "verbose": 0,
        # Not made equal: min_child_weight does not exist (a child needs a hessian of 0.001), nor
        # does the softmax hessian agree (see SOFTMAX_HESSIAN).
    }


def _rows_of(min_child_weight, task):
    """Return the fewest rows whose cover can reach `min_child_weight`.

    For libraries that count rows instead. A row's cover is 1 (squared error), at most 1/4 (log
    loss) and at most about 1/4 (softmax): exact for squared error, the weakest
    limit that min_child_weight implies otherwise.
    """
    rows_per_cover = {"regression": 1, "binary": 4, "multiclass": 4}[task]
    return max(1, math.ceil(rows_per_cover * min_child_weight))


LIBRARIES = {
    "sklboost": Library("sklboost", "XGBRegressorLite", "XGBClassifierLite", _sklboost, "n_jobs"),
    "xgboost": Library("xgboost", "XGBRegressor", "XGBClassifier", _xgboost, "n_jobs"),
    "lightgbm": Library("lightgbm", "LGBMRegressor", "LGBMClassifier", _lightgbm, "n_jobs"),
    "hist_gb": Library(
        "sklearn.ensemble",
        "HistGradientBoostingRegressor",
        "HistGradientBoostingClassifier",
        _hist_gb,
        None,
    ),
    "lightgbm_quantized": Library(
        "lightgbm", "LGBMRegressor", "LGBMClassifier", _lightgbm_quantized, "n_jobs"
    ),
    "catboost": Library(
        "catboost", "CatBoostRegressor", "CatBoostClassifier", _catboost, "thread_count"
    ),
    "catboost_symmetric": Library(
        "catboost", "CatBoostRegressor", "CatBoostClassifier", _catboost_symmetric, "thread_count"
    ),
}
DEFAULT_LIBRARIES = ("sklboost", "xgboost", "lightgbm", "hist_gb")

# The softmax hessian of a row is f * p (1 - p): f = K / (K - 1) in LightGBM and sklboost, and as
# follows in others. The same learning rate is a longer step where f is smaller.
SOFTMAX_HESSIAN = {"xgboost": 2.0, "hist_gb": 1.0}


def same_softmax_step(settings, library, n_classes):
    """Return `settings` with which `library` takes sklboost's steps for softmax.

    -eta G / (f' S + lambda), S = sum p (1 - p), equals -(eta r) G / (f S + lambda r), r = f / f'.
    """
    ratio = SOFTMAX_HESSIAN[library] * (n_classes - 1) / n_classes
    return settings._replace(
        learning_rate=settings.learning_rate * ratio,
        reg_lambda=settings.reg_lambda * ratio,
        min_child_weight=settings.min_child_weight * ratio,
    )


def make_estimator(library, settings, task, n_threads, seed=0, left_out=(), **changes):
    """Return an unfitted estimator of `library` for `task`, equivalent to its peers.

    Without settings (None) it is at the library's defaults, as are the parameters `left_out`.
    `changes` are parameters in the library's own words, which come last.
    """
    spec = LIBRARIES[library]
    parameters = {} if settings is None else spec.parameters(settings, task)
    parameters |= {spec.seed: seed} | changes
    for name in left_out:
        parameters.pop(name, None)
    if spec.threads is not None:
        parameters[spec.threads] = n_threads
    name = spec.classifier if task not in ("regression", "ranking") else spec.regressor
    if task == "ranking":
        name = name.replace("Regressor", "Ranker")
    return getattr(importlib.import_module(spec.module), name)(**parameters)


def predict(library, model, X, task, n_threads):
    """Return values (regression) or class probabilities."""
    function = model.predict if task == "regression" else model.predict_proba
    if library.startswith("catboost"):  # its constructor's thread_count is for fit alone
        return function(X, thread_count=n_threads)
    return function(X)


@contextlib.contextmanager
def quiet(library, n_threads):
    """Limit the threads of a library without a parameter for them, and keep some quiet.

    LightGBM names the columns of an array, then warns that arrays have no names; and in version 4.7
    that `eval_set`, which older ones know alone, will go. sklboost counts rows with a category that
    no training row has, which a split may leave in the test part alone.
    """
    limit = contextlib.nullcontext()
    if LIBRARIES[library].threads is None:
        from threadpoolctl import threadpool_limits

        # threadpoolctl limits the OpenMP pools that are loaded, so load the library's first.
        importlib.import_module(LIBRARIES[library].module)
        limit = threadpool_limits(limits=n_threads, user_api="openmp")
    with limit, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X has categories that no row of the training")
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        warnings.filterwarnings("ignore", message="The argument 'eval_set' is deprecated")
        yield


def is_installed(library):
    """Say whether `library` can be imported, without importing it."""
    return importlib.util.find_spec(LIBRARIES[library].module.split(".")[0]) is not None


def choose(names):
    """Return the installed ones of `names`, a list ("all": every library), naming the others."""
    names = list(LIBRARIES) if list(names) == ["all"] else list(names)
    unknown = [name for name in names if name not in LIBRARIES]
    if unknown:
        raise SystemExit(f"{', '.join(unknown)}: no such library; known: {', '.join(LIBRARIES)}")
    for name in names:
        if not is_installed(name):
            print(f"{name} is not installed: left out")
    return [name for name in names if is_installed(name)]


# --- a fit, timed and judged ----------------------------------------------------------------------


def fit_and_predict(library, dataset, settings, n_threads, seed=0, **changes):
    """Fit a new model on the train rows and predict the test rows, timing both.

    The fit includes all that a user's call does: validation, binning, XGBoost's DMatrix. Processor
    seconds are those of all threads. `changes` are parameters besides the settings (None: the
    library's defaults), in the library's own words.

    Returns
    -------
    dict
        ``fit_seconds``, ``fit_cpu_seconds``, ``predict_seconds``, ``test_loss``.
    """
    model = make_estimator(library, settings, dataset.task, n_threads, seed, **changes)
    gc.collect()
    with quiet(library, n_threads):
        start, cpu_start = time.perf_counter(), time.process_time()
        model.fit(dataset.X_train, dataset.y_train)
        fitted, cpu_seconds = time.perf_counter(), time.process_time() - cpu_start
        prediction = predict(library, model, dataset.X_test, dataset.task, n_threads)
        predicted = time.perf_counter()
    return {
        "fit_seconds": fitted - start,
        "fit_cpu_seconds": cpu_seconds,
        "predict_seconds": predicted - fitted,
        "test_loss": held_out_loss(dataset.task, dataset.y_test, prediction),
    }


def fit(library, dataset, settings, n_threads):
    """Return a model fitted on the train rows."""
    model = make_estimator(library, settings, dataset.task, n_threads)
    with quiet(library, n_threads):
        return model.fit(dataset.X_train, dataset.y_train)


def warm_up(library, dataset, settings, n_threads, **changes):
    """Fit two trees on all rows: imports, compiles, starts threads, touches the data."""
    fit_and_predict(library, dataset, settings._replace(n_estimators=2), n_threads, **changes)


def held_out_loss(task, y, prediction):
    """Return the root mean squared error (regression) or the mean log loss, in float64."""
    prediction = np.asarray(prediction, dtype=np.float64)
    if task == "regression":
        return float(np.sqrt(np.mean((y - prediction.ravel()) ** 2)))
    of_truth = prediction[np.arange(len(y)), y]
    return float(-np.mean(np.log(np.clip(of_truth, 1e-15, 1.0))))
