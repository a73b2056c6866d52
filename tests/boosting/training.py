"""A training without trees, for tests of callbacks: rounds that only take their metrics' values."""


class Model:
    """What a snapshot gives: something that can be saved."""

    def __init__(self, n_rounds, callbacks):
        self.n_rounds = n_rounds
        self.callbacks = callbacks


class FakeTraining:
    """What callbacks see of a training, and a loop that calls them as the real one does.

    `evals` has the value of each round for each metric of each validation data.
    """

    def __init__(self, callbacks, n_estimators=10, evals=None, n_rounds=0, losses=None):
        self.callbacks = callbacks
        self.n_estimators = n_estimators
        self.evals = evals or {}
        self.n_rounds = n_rounds
        self.losses = losses
        self.learning_rate = 0.3
        self.learning_rates = []
        self.best_iteration = None
        self.best_score = None
        self.elapsed = 0.0
        self.n_losses = 0

    def greater_is_better(self, metric_name):
        return metric_name == "auc"

    def training_loss(self):
        self.n_losses += 1
        return 1 / self.n_rounds if self.losses is None else self.losses[self.n_rounds - 1]

    def snapshot(self):
        return Model(self.n_rounds, self.callbacks)

    def train(self):
        try:
            for callback in self.callbacks:
                callback.before_training(self)
            self._do_rounds()
        finally:
            for callback in self.callbacks:
                callback.after_training(self)
        return self

    def _do_rounds(self):
        first = self.n_rounds
        log = {data: {metric: [] for metric in values} for data, values in self.evals.items()}
        for epoch in range(first, self.n_estimators):
            # all are asked, also after one said stop
            stops = [callback.before_iteration(self, epoch, log) for callback in self.callbacks]
            if any(stops):
                return
            self.learning_rates.append(self.learning_rate)
            self.n_rounds += 1
            self.elapsed += 1.0
            for data, values in self.evals.items():
                for metric in values:
                    log[data][metric].append(values[metric][epoch - first])
            stops = [callback.after_iteration(self, epoch, log) for callback in self.callbacks]
            if any(stops):
                return
