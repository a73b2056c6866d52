"""A training on machines that are threads of this process, in place of the workers of a cluster."""

import threading

import numpy as np

from sklboost.data.features import training_bins
from sklboost.distributed.messages import Mailboxes, ThreadPeers
from sklboost.distributed.training import ClusterRounds
from sklboost.distributed.worker_group import LostWorkersError
from sklboost.engine.parallel import ThreadTeam
from sklboost.estimators.fit import fitting
from sklboost.estimators.fit.fitting import Bins
from sklboost.tree.core.machines import BLOCK_ROWS, row_numbers
from tests.tree.growth import NO_WEIGHT

_ALL = slice(None)


def thread_peers(size):
    """Return the peers of all ranks, one for each thread."""
    mailboxes = Mailboxes(size)
    return [ThreadPeers(rank, mailboxes) for rank in range(size)]


class ThreadGroup:
    """Machines that are threads; `lose_at` are the calls, counted from 0, at which one is lost."""

    def __init__(self, n_machines, n_threads=1, lose_at=()):
        self.names = {f"machine {i}": n_threads for i in range(n_machines)}
        self._lose_at, self._n_calls = set(lose_at), 0

    def workers(self):
        return self.names

    def start(self, make, arguments):
        self._peers = peers = thread_peers(len(arguments))
        given = list(arguments.values())
        self._members = self._at_once(lambda rank: make(peers[rank], *given[rank]), len(given))

    def call(self, method, *arguments):
        self._n_calls += 1
        machines = self._members
        results = self._at_once(
            lambda rank: getattr(machines[rank], method)(*arguments), len(machines)
        )
        if self._n_calls - 1 in self._lose_at:
            self.names = dict(list(self.names.items())[1:] or self.names)
            raise LostWorkersError([], "a thread was lost")
        return results

    def traffic(self):
        return [
            {phase: (n, peers.n_bytes[phase]) for phase, n in peers.n_messages.items()}
            for peers in self._peers
        ]

    def stop(self):
        self._members = []

    def _at_once(self, do, size):
        results, errors = [None] * size, []

        def run(rank):
            try:
                results[rank] = do(rank)
            except BaseException as error:
                errors.append(error)
                self._peers[rank].stop()  # or others would wait for it

        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        return results


class LocalBins:
    """Bins in memory, or also their values, whose blocks of rows are dealt out at random."""

    def __init__(self, binned, values=None, seed=0):
        self.found = binned.binning.cuts, binned.binning.has_missing, None
        self._bins, self._values, self._seed = binned.bins, values, seed

    def __len__(self):
        return len(self._bins)

    def place_bins(self, workers, columns, *, as_values):
        assert not columns
        rows = self._values if as_values else self._bins
        n_blocks = -(-len(self._bins) // BLOCK_ROWS)
        dealt = np.arange(n_blocks) % len(workers)
        owner = np.random.default_rng(self._seed).permutation(dealt)
        owners = {worker: np.flatnonzero(owner == i) for i, worker in enumerate(workers)}

        def of(blocks):
            return rows[row_numbers(blocks * BLOCK_ROWS, len(self))]

        return {
            worker: (blocks, ((of(blocks),), _ALL, _ALL))
            for worker, blocks in owners.items()
            if len(blocks) > 0
        }


def on_machines(monkeypatch, group, binned, values=None):
    """Let trainings from now on be those of a group, on rows that were binned, or their values."""
    made = []
    with ThreadTeam(1) as team:
        bins = Bins(*training_bins(team, binned, NO_WEIGHT, binned.max_bin))

    def make_grower(team, task, limits):
        made.append(ClusterRounds(group, LocalBins(binned, values), team, task, limits))
        return made[-1]

    monkeypatch.setattr(fitting, "bin_rows", lambda *_: bins._replace(make_grower=make_grower))
    return made


def assert_same_model(one, other):
    assert (one.model_.linear is None) == (other.model_.linear is None)
    for name in ("nodes", "outputs", "tree_starts", "n_pruned", "base_score", "linear"):
        parts = [getattr(model.model_, name) for model in (one, other)]
        for pair in zip(*parts, strict=True) if isinstance(parts[0], tuple) else [parts]:
            bits = [np.asarray(part).view(np.uint8) for part in pair if part is not None]
            np.testing.assert_array_equal(bits[:1], bits[1:], err_msg=name)
