"""One fit of one library on one data set: seconds, and the held-out loss beside them."""

import contextlib
import gc
import time
import warnings
from typing import NamedTuple

import numpy as np

from . import peers


class Measurement(NamedTuple):
    """Seconds of a user's `fit(X, y)` and of predicting the test rows, and the test loss.

    `fit_cpu_seconds` are those of the processor, in all threads: with one thread, about what the
    fit takes on a machine that nobody else uses.
    """

    fit_seconds: float
    fit_cpu_seconds: float
    predict_seconds: float
    test_loss: float


def fit_and_predict(library, dataset, settings, n_threads, seed=0, **changes):
    """Fit a new model on the train rows and predict the test rows, timing both.

    The fit includes all that a user's call does: validation, binning, XGBoost's DMatrix. `changes`
    are parameters besides the settings (None: the library's defaults), in the library's own words.

    Returns
    -------
    Measurement
    """
    model = peers.make_estimator(library, settings, dataset.task, n_threads, seed, **changes)
    gc.collect()
    with quiet(library, n_threads):
        start, cpu_start = time.perf_counter(), time.process_time()
        model.fit(dataset.X_train, dataset.y_train)
        fitted, cpu_seconds = time.perf_counter(), time.process_time() - cpu_start
        prediction = peers.predict(library, model, dataset.X_test, dataset.task, n_threads)
        predicted = time.perf_counter()
    loss = test_loss(dataset.task, dataset.y_test, prediction)
    return Measurement(fitted - start, cpu_seconds, predicted - fitted, loss)


def fit(library, dataset, settings, n_threads):
    """Return a model fitted on the train rows."""
    model = peers.make_estimator(library, settings, dataset.task, n_threads)
    with quiet(library, n_threads):
        return model.fit(dataset.X_train, dataset.y_train)


@contextlib.contextmanager
def quiet(library, n_threads):
    """Limit the threads of a library without a parameter for them, and keep some quiet.

    LightGBM names the columns of an array, then warns that arrays have no names; and in version 4.7
    that `eval_set`, which older ones know alone, will go. sklboost counts rows with a category that
    no training row has, which a split may leave in the test part alone.
    """
    with peers.thread_limit(library, n_threads), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X has categories that no row of the training")
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        warnings.filterwarnings("ignore", message="The argument 'eval_set' is deprecated")
        yield


def warm_up(library, dataset, settings, n_threads, **changes):
    """Fit two trees on all rows: imports, compiles, starts threads, touches the data."""
    fit_and_predict(library, dataset, settings._replace(n_estimators=2), n_threads, **changes)


def test_loss(task, y, prediction):
    """Return the root mean squared error (regression) or the mean log loss, in float64."""
    prediction = np.asarray(prediction, dtype=np.float64)
    if task == "regression":
        return float(np.sqrt(np.mean((y - prediction.ravel()) ** 2)))
    of_truth = prediction[np.arange(len(y)), y]
    return float(-np.mean(np.log(np.clip(of_truth, 1e-15, 1.0))))
