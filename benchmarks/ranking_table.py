"""The Markdown table of `benchmarks.ranking`, from its JSON lines."""

import json

import numpy as np

from .tables import markdown_lines


def write_table(lines, table):
    """Write the table of the JSON lines in the file `lines` to the file `table`."""
    cases, record = {}, {}
    for line in lines.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        rankers = cases.setdefault(record["dataset"], {})
        rankers.setdefault(record["ranker"], {})[record["seed"]] = record
    settings, n_rows = record["settings"], record["round"]
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    text = [
        "# Rankings\n",
        f"NDCG@10 of queries that were not learnt from, means over random splits or simulations. "
        f"{settings['n_estimators']} trees, learning rate {settings['learning_rate']}, depth "
        f"{settings['max_depth']}, min_child_weight {settings['min_child_weight']}, a thread. "
        f"`lgb_lambdarank`: LightGBM's example, four fifths of its 251 queries to learn from. "
        "`clicks`: learnt from simulated clicks that depend on the position, judged by the true "
        "relevances.\n\n`difference`: from sklboost's `rank:ndcg` of the same seed.\n\nCommit "
        f"{record['commit']}; {versions}. Written by `python -m benchmarks.ranking` from "
        "`ranking.jsonl`.\n",
    ]
    rows = [
        ["data set", "ranker", "NDCG@10", "± s.e.", "difference", "its s.e.", "processor seconds"]
    ]
    for dataset in [name for name in cases if name != "round"]:
        rows += [[dataset, *_cells(cases[dataset], ranker)] for ranker in cases[dataset]]
    text += markdown_lines(rows, [True, True])
    if "round" in cases:
        text.append(
            f"\n## Time of a round\n\n{n_rows[0]:,} rows, {n_rows[1]} features, queries of "
            f"{n_rows[2]} documents, five relevances; processor time on one thread, the least of "
            "the repetitions.\n"
        )
        rows = [["ranker", "milliseconds", "of squared error's"]]
        least = {name: min(r["value"] for r in of.values()) for name, of in cases["round"].items()}
        base = least["sklboost reg:squarederror"]
        rows += [[name, f"{value:.1f}", f"{value / base:.2f}"] for name, value in least.items()]
        text += markdown_lines(rows, [True])
    table.write_text("\n".join(text) + "\n", encoding="utf-8")


def _cells(rankers, name):
    values = np.array([record["value"] for record in rankers[name].values()])
    base = rankers["sklboost rank:ndcg"]
    gained = np.array([r["value"] - base[seed]["value"] for seed, r in rankers[name].items()])
    seconds = np.median([record["cpu_seconds"] for record in rankers[name].values()])
    return [
        name,
        *(f"{values.mean():.4f}", f"{_error(values):.4f}"),
        *(f"{gained.mean():+.4f}", f"{_error(gained):.4f}", f"{seconds:.2f}"),
    ]


def _error(values):
    return np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
