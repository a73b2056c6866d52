"""The Markdown tables of `benchmarks.defaults`, from its JSON lines."""

import pandas as pd

from . import tables
from .preset_variants import LIBRARIES, OURS, PEERS, PRESET, TRIED

# The preset was developed without these.
LEFT_OUT = ("bank_marketing", "bike_hour", "letter", "breast_cancer", "digits", "wine")
MOST_EXCESS = 20.0  # per cent: beyond, a data set would decide on the mean alone
WANTED_SPLITS = 5


def write_table(lines, table):
    """Write the tables of the JSON lines in the file `lines` to the file `table`."""
    records = pd.read_json(lines, lines=True).drop_duplicates(
        ["dataset", "seed", "variant"], keep="last"
    )
    main = means(records, LIBRARIES)
    text = [_introduction(records, main), _by_dataset(records, main)]
    text += [_SUMMARY, _summary(main)]
    tried = means(records, dict.fromkeys([*PEERS, *TRIED]))
    if len(tried):
        text += [_introduce_tried(tried), _tried(tried)]
    table.write_text("\n\n".join(text) + "\n", encoding="utf-8")


def means(records, variants):
    """Return mean losses and seconds of each data set, over the splits that all variants have.

    Parameters
    ----------
    records : DataFrame
    variants : collection of str

    Returns
    -------
    DataFrame
        A row a data set; columns ``(figure, variant)``, and the number of splits.
    """
    own = records[records["variant"].isin(list(variants))]
    splits = own.pivot(
        index=["dataset", "seed"], columns="variant", values=["test_loss", "fit_cpu_seconds"]
    ).reindex(columns=pd.MultiIndex.from_product([["test_loss", "fit_cpu_seconds"], variants]))
    by_dataset = splits.dropna().groupby("dataset")
    found = by_dataset.mean()
    found["splits", ""] = by_dataset.size()
    order = [name for name in records["dataset"].unique() if name in found.index]
    return found.loc[order]


def excess(losses):
    """Return by how many per cent losses are above the best of the four peers."""
    best = losses[list(PEERS)].min(axis=1)
    return 100 * (losses.div(best, axis=0) - 1)


def mean_excess(above, least=-100.0):
    """Return the mean of an excess over the data sets, cut at both ends."""
    return above.clip(least, MOST_EXCESS).mean()


def _by_dataset(records, main):
    facts = records.drop_duplicates("dataset").set_index("dataset")
    above, seconds = excess(main["test_loss"]), main["fit_cpu_seconds"]
    rows = []
    for name, fact in facts.loc[main.index].iterrows():
        row = {
            "data set": name,
            "task": fact["task"],
            "train x features": f"{fact['n_train']:,} x {fact['n_features']}",
            "splits": str(main.loc[name, "splits"].item()),
            "development": "no" if name in LEFT_OUT else "yes",
        }
        row |= {variant: f"{above.loc[name, variant]:.1f}" for variant in LIBRARIES}
        row |= {f"s, {own}": f"{seconds.loc[name, own]:.1f}" for own in ("catboost", PRESET)}
        rows.append(row)
    return tables.markdown(rows, ("data set", "task", "train x features", "development"))


def _summary(main):
    left_out = main.index.isin(LEFT_OUT)
    parts = {"all": main, "development": main[~left_out], "left out": main[left_out]}
    rows = [_summary_row(name, part) for name, part in parts.items() if len(part)]
    return tables.markdown(rows, ("data sets",))


def _summary_row(name, main):
    losses, seconds = main["test_loss"], main["fit_cpu_seconds"].sum()
    compared = [*PEERS, PRESET]
    ranks = losses[compared].rank(axis=1).mean()
    above = excess(losses)[PRESET]
    return {
        "data sets": f"{name}, {len(main)}",
        **{f"rank of {variant}": f"{ranks[variant]:.2f}" for variant in compared},
        "better than CatBoost": f"{100 * (losses[PRESET] < losses['catboost']).mean():.0f} %",
        "mean excess": f"{mean_excess(above):.1f}",
        "with negatives as 0": f"{mean_excess(above, least=0.0):.1f}",
        "seconds / CatBoost's": f"{seconds[PRESET] / seconds['catboost']:.2f}",
    }


def _tried(tried):
    losses, seconds = tried["test_loss"], tried["fit_cpu_seconds"].sum()
    above = excess(losses)
    rows = [
        {
            "variant": variant,
            "mean excess": f"{mean_excess(above[variant]):.1f}",
            "with negatives as 0": f"{mean_excess(above[variant], least=0.0):.1f}",
            "worst": f"{above[variant].max():.1f}",
            "better than the preset": f"{(losses[variant] < losses[PRESET]).sum()}",
            "seconds / CatBoost's": f"{seconds[variant] / seconds['catboost']:.2f}",
        }
        for variant in TRIED
    ]
    return tables.markdown(rows, ("variant",))


_SUMMARY = (
    f"Mean rank of the four peers and `{PRESET}`; on how many data sets its loss is below "
    f"CatBoost's; its mean excess, cut at {MOST_EXCESS:.0f} %; and the sum of its seconds over "
    "CatBoost's."
)


def _splits(means):
    """Say how many splits the figures are means of, and what that means if they are few."""
    least, most = means["splits"].min(), means["splits"].max()
    number = f"{least}" if least == most else f"{least} to {most}"
    few = ", fewer than five: small differences may be chance" if least < WANTED_SPLITS else ""
    return f"Splits of each data set: {number}{few}."


def _introduction(records, main):
    last, commits = records.iloc[-1], ", ".join(map(str, records["commit"].unique()))
    versions = ", ".join(f"{name} {version}" for name, version in last["versions"].items())
    return (
        "# Held-out loss at defaults\n\n"
        'Every library at its defaults, and `preset="auto"`. At most 20,000 training rows and '
        "10,000 test rows of each data set, categories as ordinal codes. Root mean squared error "
        "for regression, mean log loss otherwise: by how many per cent it is above that of the "
        f"best of {', '.join(PEERS)}; below 0, {OURS} is better than all four. "
        f"{_splits(main)} Processor seconds of the fit, {tables.threads(last['threads'])}, while "
        "other work used the machine.\n\n"
        "The preset was developed on the data sets so marked, and on others that are not here. "
        "bank_marketing, bike_hour and letter were left out until it was finished; breast_cancer, "
        "digits and wine took no part in it either. Afterwards steps and trials were made "
        "shorter for many classes, since letter took long. breast_cancer and wine have so few test "
        "rows (113 and 35) that their figures say little.\n\n"
        f"Commit {commits}; {versions}. Written by `python -m benchmarks.defaults` from "
        "`defaults.jsonl`."
    )


def _introduce_tried(tried):
    return (
        "## What was tried\n\n"
        f"Variants of the preset on {len(tried)} of the data sets that it was developed on. "
        f"{_splits(tried)} The first rows have the stages of the trials one by one; where a "
        "parameter has no stage yet, its first candidate is taken. "
        f"`{PRESET}` has all of them, the last being the share of columns, and steps a quarter as "
        "large as those of the trials. Then: other steps; four trees a round instead of small "
        "steps; two more depths; and the settings of [Holzmüller et al. 2024]"
        "(https://arxiv.org/abs/2407.04491), tuned on 118 data sets, with "
        "`early_stopping_rounds=100, refit=True`. `worst` is the largest excess of a data set.\n\n"
        f"Data sets: {', '.join(tried.index)}."
    )
