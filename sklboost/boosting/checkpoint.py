"""The callback that saves a model while it trains.

A file is written beside its place and then moved there, so that a crash leaves a whole file or
none.
"""

import os
from pathlib import Path
from uuid import uuid4

import joblib

from sklboost.boosting.callbacks import (
    EvalsLog,
    TrainingCallback,
    TrainingState,
    check_positive_integer,
)


class Checkpoint(TrainingCallback):
    """Save the model at regular intervals and at the end.

    The files ``model_100.joblib``, ``model_200.joblib`` and so on are for ``joblib.load``: fitted
    estimators, as if training had ended there, but without `callbacks`, which may hold what cannot
    be saved. A file is written whole or not at all.

    Parameters
    ----------
    directory : str or path-like
        An existing folder.
    name : str, default="model"
        Beginning of the files' names.
    interval : int, default=100
        Rounds between two files.

    Examples
    --------
    >>> import tempfile
    >>> import joblib
    >>> from sklearn.datasets import load_diabetes
    >>> from sklboost import Checkpoint, XGBRegressorLite
    >>> X, y = load_diabetes(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     callbacks = [Checkpoint(folder, interval=10)]
    ...     _ = XGBRegressorLite(n_estimators=25, callbacks=callbacks).fit(X, y)
    ...     model = joblib.load(f"{folder}/model_20.joblib")
    >>> model.model_.n_rounds
    20
    """

    def __init__(self, directory: str | os.PathLike[str], name: str = "model", interval: int = 100):
        check_positive_integer("interval", interval)
        if not name or Path(name).name != name:
            raise ValueError(f"name={name!r}: it must be the beginning of a file's name, no path")
        self.directory = directory
        self.name = name
        self.interval = interval

    def before_training(self, training: TrainingState) -> None:  # noqa: D102, as in TrainingCallback
        if not Path(self.directory).is_dir():
            raise FileNotFoundError(
                f"directory={str(self.directory)!r}: there is no such folder; create it first"
            )

    def after_iteration(  # noqa: D102, as in TrainingCallback
        self, training: TrainingState, epoch: int, evals_log: EvalsLog
    ) -> bool:
        if training.n_rounds % self.interval == 0:
            self._save(training)
        return False

    def after_training(self, training: TrainingState) -> None:  # noqa: D102, as in TrainingCallback
        if training.n_rounds > training.first_round and training.n_rounds % self.interval != 0:
            self._save(training)

    def _save(self, training: TrainingState) -> None:
        """Write the snapshot next to its place, then move it there in one step."""
        model = training.snapshot()
        model.callbacks = None
        target = Path(self.directory) / f"{self.name}_{training.n_rounds}.joblib"
        # a name of its own: other processes and threads of a search may write to the same folder
        partial = target.with_name(f"{target.name}.{uuid4().hex}.part")
        try:
            with open(partial, "xb") as file:
                joblib.dump(model, file, compress=1)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, target)
        finally:
            partial.unlink(missing_ok=True)
