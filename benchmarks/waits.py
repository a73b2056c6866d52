"""How long members of a team wait for one another, and what teams of many cores would do.

Each fit is in a process of its own, see waits_child.py; it has the trees of a plain fit, or there
is an error. A record of the kind "waits" is one fit of a real team, pinned to the first two
processors; one of the kind "cores" is a model's, for a team that need not fit this machine.
"""

import hashlib
import json
import os
import subprocess
import sys
import time

from . import measure
from .aims import OURS
from .fits import describe, load_float32
from .turns import more_for_small

MODELLED = (1, 2, 4, 8, 16, 64)
PROCESSORS = 2


def measure_waits(workload, options):
    """Yield a record for each fit whose meetings were noted, then those of the model."""
    dataset, settings = load_float32(workload.dataset), workload.settings
    facts = {"workload": workload.name, "settings": settings._asdict(), **describe(dataset)}
    measure.fit(OURS, dataset, settings._replace(n_estimators=2), 1)  # compiles
    start = time.perf_counter()
    model = measure.fit(OURS, dataset, settings, 1)
    facts |= {"library": OURS, "plain_seconds": time.perf_counter() - start}
    digest = hashlib.sha256(model.model_.nodes.tobytes()).hexdigest()
    n_repeats = more_for_small(options, len(dataset.X_train)).repeats
    for kind, all_members in (("waits", workload.threads), ("cores", MODELLED)):
        for n_members in all_members:
            for record in fit_in_child(kind, workload, n_members, n_repeats):
                if record.pop("digest") != digest:
                    raise RuntimeError(f"{n_members} members noted what they did, in other trees")
                yield {"kind": kind, **facts, "threads": n_members, **record}


def fit_in_child(kind, workload, n_members, n_repeats):
    """Return what a process that fits so many times tells: a dict a line."""
    how = [json.dumps(workload.settings._asdict()), n_members, n_repeats, kind]
    child = [sys.executable, "-m", "benchmarks.waits_child", workload.dataset, *map(str, how)]
    available = getattr(os, "sched_getaffinity", lambda process: ())(0)

    def pin():
        if available:
            os.sched_setaffinity(0, sorted(available)[:PROCESSORS])

    environment = {**os.environ, "SKLBOOST_BACKEND": "compiler"}
    done = subprocess.run(
        child, env=environment, preexec_fn=pin, stdout=subprocess.PIPE, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]
