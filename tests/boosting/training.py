"""What a training is given, and one without trees whose rounds only take their metrics' values."""

import numpy as np

from sklboost.boosting.settings import BoostingTask, feature_rules
from sklboost.data.features import training_bins
from sklboost.tree.predict.trees import no_trees

NO_WEIGHT = np.empty(0)


def make_task(team, X, y, raw_score, *, weight=NO_WEIGHT, seed=0, base_score=None, **settings):
    """Return a task of boosting; `settings` are at least the loss and `params`."""
    matrix, cuts = training_bins(team, X, weight, 256)
    plain = dict(
        X=X,
        matrix=matrix,
        cuts=cuts,
        y=y,
        weight=weight,
        sample_weight=weight,
        raw_score=raw_score,
        base_score=np.zeros(len(raw_score)) if base_score is None else base_score,
        trees_before=no_trees(),
        rules=feature_rules(X.shape[1]),
        seed=seed,
        sampling_seed=seed,
        dropout=None,
        keep_pruned=False,
    )
    return BoostingTask(**plain, **settings)


class Model:
    """What a snapshot gives: something that can be saved."""

    def __init__(self, n_rounds, callbacks):
        self.n_rounds = n_rounds
        self.callbacks = callbacks


class FakeTraining:
    """What callbacks see of a training, and a loop that calls them as the real one does.

    `evals` has the value of each round for each metric of each validation data; `n_at_once` rounds
    are done before callbacks are told of them.
    """

    def __init__(self, callbacks, n_estimators=10, evals=None, n_rounds=0, n_at_once=1):
        self.callbacks = callbacks
        self.n_estimators = n_estimators
        self.evals = evals or {}
        self.first_round = self.n_rounds = self.n_done = n_rounds
        self.n_at_once = n_at_once
        self.learning_rate = 0.3
        self.learning_rates = []
        self.best_iteration = None
        self.best_score = None
        self.stop_reason = ""
        self.elapsed = 0.0
        self.n_losses = 0

    def greater_is_better(self, metric_name):
        return metric_name == "auc"

    def training_loss(self):
        self.n_losses += 1
        return 1 / self.n_done

    def snapshot(self):
        return Model(self.n_rounds, self.callbacks)

    def train(self):
        try:
            for callback in self.callbacks:
                callback.before_training(self)
            self.stop_reason = "early_stopping" if self._do_rounds() else "completed"
        finally:
            for callback in self.callbacks:
                callback.after_training(self)
        return self

    def _do_rounds(self):
        """Return whether a callback has stopped training."""
        first = self.first_round
        for start in range(first, self.n_estimators, self.n_at_once):
            log = self._evals_log(start - first)
            if any(self._ask("before_iteration", start, log)):
                return True
            stop = min(start + self.n_at_once, self.n_estimators)
            self.learning_rates += (stop - start) * [self.learning_rate]
            self.n_done = stop
            self.elapsed += stop - start
            for epoch in range(start, stop):
                self.n_rounds = epoch + 1
                if any(self._ask("after_iteration", epoch, self._evals_log(epoch + 1 - first))):
                    return True
        return False

    def _ask(self, method, epoch, log):
        # a list: all are told, also after one said stop
        return [getattr(callback, method)(self, epoch, log) for callback in self.callbacks]

    def _evals_log(self, n_rounds):
        return {
            data: {metric: values[:n_rounds] for metric, values in of_metric.items()}
            for data, of_metric in self.evals.items()
        }
