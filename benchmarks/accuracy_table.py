"""The Markdown table of `benchmarks.accuracy`, from its JSON lines."""

import json

from .ratios import as_text, mean_of, paired_ratio
from .tables import markdown_lines

RIVALS = ("xgboost", "lightgbm", "hist_gb")  # ours is compared with the best of these
OURS = "sklboost"


def write_table(lines, table):
    """Write the table of the JSON lines in the file `lines` to the file `table`."""
    losses, facts = _read(lines)
    variants = sorted({variant for _, variant in losses}, key=_order)
    head = ["data set", "task", "train x features", "splits", *variants]
    rows = [[*head, "ours / best", "± s.e.", "same step"]]
    for dataset, fact in facts.items():
        cells = [_mean(losses.get((dataset, variant))) for variant in variants]
        size = f"{fact['n_train']:,} x {fact['n_features']}"
        n_seeds = str(max(len(seeds) for key, seeds in losses.items() if key[0] == dataset))
        of_dataset = {variant: losses.get((dataset, variant)) for variant in variants}
        same_step = {
            name: of_dataset.get(f"{name} (same step)") or of_dataset.get(name) for name in RIVALS
        }
        ratio = [*_ratio(of_dataset), ""]
        if fact["task"] == "multiclass":
            ratio[2] = _ratio(same_step | {OURS: of_dataset.get(OURS)})[0]
        rows.append([dataset, fact["task"], size, n_seeds, *cells, *ratio])
    text = [_introduction(facts), *markdown_lines(rows, [True] * 4)]
    table.write_text("\n".join(text) + "\n", encoding="utf-8")


def _read(lines):
    """Return {(dataset, variant): {seed: loss}} and, of each data set, the last record."""
    losses, facts = {}, {}
    for line in lines.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        key = record["dataset"], record["variant"]
        losses.setdefault(key, {})[record["seed"]] = record["test_loss"]
        facts[record["dataset"]] = record
    return losses, facts


def _ratio(losses):
    """Return ours over the best rival (the lowest mean), and the standard error of that ratio.

    Rivals count at the nominal learning rate.
    """
    ours = losses.get(OURS)
    rivals = {name: losses[name] for name in RIVALS if losses.get(name)}
    if not ours or not rivals:
        return "", ""
    best = min(rivals.values(), key=mean_of)
    return as_text(*paired_ratio(ours, best))


def _mean(seeds):
    return f"{mean_of(seeds):.5g}" if seeds else ""


def _order(variant):
    known = [OURS, *RIVALS]
    library = variant.split(" ")[0]
    return (known.index(library) if library in known else len(known), variant)


def _introduction(facts):
    last = next(reversed(facts.values()))
    settings = last["settings"]
    versions = ", ".join(f"{name} {version}" for name, version in last["versions"].items())
    return (
        "# Held-out accuracy\n\n"
        f"{settings['n_estimators']} trees, learning rate {settings['learning_rate']}, depth "
        f"{settings['max_depth']}, lambda {settings['reg_lambda']}, min_child_weight "
        f"{settings['min_child_weight']}, no early stopping. Root mean squared error for "
        "regression, mean log loss otherwise, mean over the splits; lower is better. `ours / best`"
        f" compares with the best of {', '.join(RIVALS)} at the same learning rate; its standard "
        "error is that of the paired ratios. `same step` is the same ratio for softmax with the "
        "learning rates that make the steps equal, see `benchmarks/README.md`."
        f"\n\nCommit {last['commit']}; {versions}. Written by `python -m benchmarks.accuracy` from "
        "`accuracy.jsonl`.\n"
    )
