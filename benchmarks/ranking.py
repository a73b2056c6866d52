"""Held-out NDCG@10 of rankers, on graded relevances and on simulated clicks, and time of a round.

`lgb_lambdarank` is LightGBM's example, four fifths of its queries to learn from. `clicks` are
simulated: an older ranker shows 20 documents in its order, users look at position k with
probability 1 / k and click with a probability that grows with the relevance; what counts is the
NDCG of the true relevances. A round is the difference of two numbers of trees, divided.

Run `python -m benchmarks.ranking`; it writes `ranking.jsonl` and `.md`.
"""

import time
from functools import partial
from typing import NamedTuple

import numpy as np

from sklboost import XGBRankerLite, XGBRegressorLite
from sklboost.objectives.metrics import mean_over_queries

from . import datasets, runner

SETTINGS = dict(n_estimators=100, learning_rate=0.1, max_depth=6, min_child_weight=0.1)
N_CLICKED, N_TEST, N_SHOWN, N_FEATURES = 1000, 500, 20, 12
# rows, features, documents of a query; rounds that are subtracted, and all
ROUND = (100_000, 28, 100, 5, 35)


class Queries(NamedTuple):
    """Documents of queries: features, what is learnt or judged by, number of the query."""

    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray


# --- data -----------------------------------------------------------------------------------------


def lgb_lambdarank(seed):
    raw = datasets.loader().load("lgb_lambdarank")
    X_test, y_test, group_test = raw["test"]
    X = np.vstack([raw["X"].toarray(), X_test.toarray()])
    y = np.r_[raw["y"], y_test]
    qid = np.r_[raw["group"], group_test + raw["group"].max() + 1]
    chosen = np.random.default_rng(seed).permutation(qid.max() + 1)[: (qid.max() + 1) // 5]
    is_test = np.isin(qid, chosen)
    return Queries(X[~is_test], y[~is_test], qid[~is_test]), Queries(
        X[is_test], y[is_test], qid[is_test]
    )


def clicks(seed):
    random = np.random.default_rng(seed)
    n_queries = N_CLICKED + N_TEST
    X = random.normal(size=(n_queries, N_SHOWN, N_FEATURES))
    signal = X[..., 0] + np.abs(X[..., 1]) * X[..., 2] + np.sin(2.0 * X[..., 3])
    signal += random.normal(scale=0.5, size=signal.shape)
    relevance = np.digitize(signal, [0.5, 1.2, 2.0, 3.0])
    shown = np.argsort(-(0.5 * X[..., 0] + random.normal(size=signal.shape)), axis=1)
    X, relevance = (
        np.take_along_axis(X, shown[..., np.newaxis], axis=1),
        np.take_along_axis(relevance, shown, axis=1),
    )
    attractive = 0.1 + 0.9 * (2.0**relevance - 1.0) / 15.0
    looked_at = 1.0 / np.arange(1.0, N_SHOWN + 1.0)
    clicked = (random.random(relevance.shape) < attractive * looked_at) * 1
    qid = np.repeat(np.arange(n_queries), N_SHOWN)
    X, train = X.reshape(-1, N_FEATURES), qid < N_CLICKED
    return Queries(X[train], clicked.ravel()[train], qid[train]), Queries(
        X[~train], relevance.ravel()[~train], qid[~train]
    )


DATA = {"lgb_lambdarank": lgb_lambdarank, "clicks": clicks}


# --- rankers: from settings to something with fit(X, y, qid) and predict(X) -----------------------


def sklboost(objective="rank:ndcg", **parameters):
    return lambda settings: XGBRankerLite(objective=objective, **settings, **parameters)


def xgboost(**parameters):
    import xgboost as library

    return lambda settings: library.XGBRanker(
        objective="rank:ndcg", tree_method="hist", **settings, **parameters
    )


class ByGroups:
    """A ranker that wants the sizes of queries."""

    def __init__(self, model):
        self.model = model

    def fit(self, X, y, qid):
        self.model.fit(X, y, group=np.unique(qid, return_counts=True)[1])
        return self

    def predict(self, X):
        return self.model.predict(X)


def lightgbm(objective):
    import lightgbm as library

    def make(settings):
        settings = settings | dict(num_leaves=2 ** settings["max_depth"] - 1)
        return ByGroups(library.LGBMRanker(objective=objective, verbose=-1, **settings))

    return make


class YetiRank:
    """CatBoost's ranker, whose arguments have other names."""

    def __init__(self, settings, loss="YetiRank"):
        from catboost import CatBoost

        names = {
            "n_estimators": "iterations",
            "max_depth": "depth",
            "learning_rate": "learning_rate",
            "n_jobs": "thread_count",
            "random_state": "random_seed",
        }
        own = {names[name]: value for name, value in settings.items() if name in names}
        self.model = CatBoost(dict(loss_function=loss, verbose=0, allow_writing_files=False, **own))

    def fit(self, X, y, qid):
        self.model.fit(X, y, group_id=qid)
        return self

    def predict(self, X):
        return self.model.predict(X)


RANKERS = {
    "sklboost rank:ndcg": lambda: sklboost(),
    "sklboost rank:xendcg": lambda: sklboost("rank:xendcg"),
    "sklboost rank:pairwise": lambda: sklboost("rank:pairwise"),
    "sklboost rank:yeti": lambda: sklboost("rank:yeti"),
    "sklboost rank:yeti, classic": lambda: sklboost("rank:yeti", yeti_mode="classic"),
    "sklboost rank:ndcg, unbiased": lambda: sklboost(lambdarank_unbiased=True),
    "XGBoost rank:ndcg": lambda: xgboost(),
    "XGBoost rank:ndcg, unbiased": lambda: xgboost(lambdarank_unbiased=True),
    "LightGBM lambdarank": lambda: lightgbm("lambdarank"),
    "LightGBM rank_xendcg": lambda: lightgbm("rank_xendcg"),
    "CatBoost YetiRank": lambda: YetiRank,
    "CatBoost YetiRank, NDCG": lambda: partial(YetiRank, loss="YetiRank:mode=NDCG"),
}


# --- measuring ------------------------------------------------------------------------------------


def main(arguments=None):
    """Train every ranker on every data set and seed; then write the table."""
    runner.sleep_when_idle()
    parser = runner.parser("benchmarks.ranking", __doc__)
    parser.add_argument("--datasets", nargs="+", default=[*DATA, "round"])
    parser.add_argument("--rankers", nargs="+", default=list(RANKERS))
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args(arguments)
    shown = ("dataset", "seed", "ranker", "value")
    runner.write_results("ranking", _records(options), shown, write_table, options)


def _records(options):
    for name in options.datasets:
        for record in _rounds(options) if name == "round" else _ndcg(name, options):
            yield {"settings": SETTINGS, "round": ROUND, "dataset": name, **record}


def _ndcg(name, options):
    for seed in range(options.seeds):
        train, test = DATA[name](seed)
        for ranker in options.rankers:
            if "unbiased" in ranker and name != "clicks":
                continue
            model = RANKERS[ranker]()(SETTINGS | dict(n_jobs=1, random_state=seed))
            begin = time.process_time()
            model.fit(train.X, train.y, qid=train.qid)
            seconds = time.process_time() - begin
            scores = model.predict(test.X)
            y = np.column_stack([test.y, test.qid]).astype(float)
            value = mean_over_queries("ndcg@10", y, scores, np.empty(0), True)
            yield {"seed": seed, "ranker": ranker, "value": value, "cpu_seconds": seconds}


def _rounds(options):
    """Yield milliseconds of a round, the processor's, on one thread; rankers take turns."""
    n_rows, n_features, n_documents, few, many = ROUND
    random = np.random.default_rng(0)
    X = random.normal(size=(n_rows, n_features)).astype(np.float32)
    signal = X[:, 0] + X[:, 1] * X[:, 2] + random.normal(size=n_rows)
    y, qid = (
        np.clip(np.round(signal), 0, 4),
        np.repeat(np.arange(n_rows // n_documents), n_documents),
    )
    makers = {"sklboost reg:squarederror": lambda: WithoutQueries}
    makers |= {name: RANKERS[name] for name in options.rankers if "CatBoost" not in name}
    for seed in range(min(options.seeds, 5)):
        for name, make in makers.items():
            seconds = []
            for n_estimators in (few, many):
                settings = SETTINGS | dict(n_jobs=1, random_state=0, n_estimators=n_estimators)
                model = make()(settings)
                begin = time.process_time()
                model.fit(X, y, qid=qid)
                seconds.append(time.process_time() - begin)
            value = 1e3 * (seconds[1] - seconds[0]) / (many - few)
            yield {"seed": seed, "ranker": name, "value": value, "cpu_seconds": seconds[1]}


class WithoutQueries:
    """Squared error, which knows no queries."""

    def __init__(self, settings):
        self.model = XGBRegressorLite(**settings)

    def fit(self, X, y, qid):
        self.model.fit(X, y)
        return self


# --- the table ------------------------------------------------------------------------------------


def write_table(records):
    """Return the lines of the page `ranking.md`."""
    rows = [["data set", "ranker", "NDCG@10", "± s.e.", "difference", "its s.e."]]
    rows[0].append("processor seconds")
    rounds = {}
    for (dataset,), of_dataset in runner.grouped(records, "dataset").items():
        rankers = runner.grouped(of_dataset, "ranker")
        for (ranker,), own in rankers.items():
            if dataset == "round":
                rounds[ranker] = min(record["value"] for record in own)
                continue
            base = runner.by_seed(rankers["sklboost rank:ndcg",], "value")
            gained = runner.mean_and_error(r["value"] - base[r["seed"]] for r in own)
            rows.append(
                [
                    *(dataset, ranker),
                    *runner.cells(*runner.mean_and_error(record["value"] for record in own)),
                    *runner.cells(gained[0], form="+.4f") + runner.cells(gained[1]),
                    f"{np.median([record['cpu_seconds'] for record in own]):.2f}",
                ]
            )
    lines = [
        "# Rankings\n",
        "NDCG@10 of queries that were not learnt from, means over random splits or simulations. "
        "100 trees, learning rate 0.1, depth 6, min_child_weight 0.1, a thread. "
        "`lgb_lambdarank`: LightGBM's example, four fifths of its 251 queries to learn from. "
        "`clicks`: learnt from simulated clicks that depend on the position, judged by the true "
        "relevances. `difference`: from sklboost's `rank:ndcg` of the same seed.\n",
        *runner.markdown(rows, 2),
    ]
    if rounds:
        n_rows, n_features, n_documents, *_ = ROUND
        rows = [["ranker", "milliseconds", "over squared error"]]
        for ranker, value in rounds.items():
            ratio = value / rounds["sklboost reg:squarederror"]
            rows.append([ranker, f"{value:.1f}", f"{ratio:.2f}"])
        lines += [
            "\n## Time of a round\n",
            f"{n_rows:,} rows, {n_features} features, queries of {n_documents} documents, five "
            "relevances; processor time on one thread, the least of the repetitions.\n",
            *runner.markdown(rows),
        ]
    return [*lines, f"\n{runner.origin(records, 'ranking')}"]


if __name__ == "__main__":
    runner.start(main)
