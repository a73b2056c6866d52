"""The trees of a model as a table, one row a node."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sklboost.data.encoding import Encoding, zone_of
from sklboost.engine.model import LinearLeaves, Model
from sklboost.inspection.derivation.trees import ModelNames
from sklboost.tree.core.formulas import leaf_weight, similarity_at
from sklboost.tree.predict.category_bits import listed_categories


def node_frame(model: Model, names: ModelNames) -> Any:
    """Return the table as a frame of pandas, with times of pandas in the zones of their columns."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("trees_to_dataframe needs pandas: pip install pandas") from error

    def value_of(value: Any, encoding: Encoding) -> Any:
        if isinstance(value, list):
            return [value_of(own, encoding) for own in value]
        if not isinstance(value, np.datetime64 | np.timedelta64):
            return value
        if np.datetime_data(value.dtype)[0] in ("ps", "fs", "as"):  # which pandas cuts off
            return value
        try:
            own = pd.Timestamp(value) if isinstance(value, np.datetime64) else pd.Timedelta(value)
        except ValueError:  # too far away for pandas
            return value
        if not encoding.timezone:
            return own
        return own.tz_localize("UTC").tz_convert(zone_of(encoding.timezone))

    table = node_table(model, names)
    encodings = [names.encoding(feature) for feature in model.nodes.feature.tolist()]
    for name in ("Split", "Category"):
        table[name] = list(map(value_of, table[name], encodings))
    if not all(isinstance(split, float) for split in table["Split"]):
        table["Split"] = pd.Series(table["Split"], dtype=object)  # floats would round integers
    return pd.DataFrame(table)


@np.errstate(all="ignore")
def node_table(model: Model, names: ModelNames) -> dict[str, list[Any]]:
    """Return the columns of ``trees_to_dataframe`` by name; None where a node has no such thing."""
    columns = _COLUMNS if model.linear is None else _COLUMNS + _LINEAR_COLUMNS
    table: dict[str, list[Any]] = {name: [] for name in columns}
    for tree in range(model.n_trees):
        start, stop = model.tree_starts[tree], model.tree_starts[tree + 1]
        for number, node in enumerate(model.nodes[start:stop]):
            row = _node_row(model, tree, number, node)
            if node.left >= 0:
                left, right = f"{tree}-{node.left}", f"{tree}-{node.right}"
                row |= {
                    "Feature": names.features[node.feature],
                    "Split": names.encoding(node.feature).threshold(float(node.threshold)),
                    "Yes": left,
                    "No": right,
                    "Missing": left if node.default_left else right,
                    "Gain": float(node.gain),
                }
                if np.isnan(node.threshold):
                    codes = listed_categories(model.tops.bits, start + number)
                    of_code = names.categories[node.feature]
                    row["Category"] = [category for code in codes for category in of_code[code]]
            elif model.linear is not None:
                row |= _line_row(model.linear, start + number, names.features)
            for name, values in table.items():
                values.append(row.get(name))
    return table


_COLUMNS = (
    *("Tree", "Node", "ID", "Feature", "Split", "Yes", "No", "Missing"),
    *("Gain", "Cover", "Category", "Similarity", "Output"),
)
_LINEAR_COLUMNS = ("Shift", "Slopes", "Centres", "Least", "Most")


def _line_row(
    linear: LinearLeaves, position: int, feature_names: Sequence[str]
) -> dict[str, object]:
    terms = linear.terms[linear.starts[position] : linear.starts[position + 1]].view(np.recarray)
    names = [feature_names[feature] for feature in terms.feature]
    slopes = dict(zip(names, terms.slope.tolist(), strict=True))
    centres = dict(zip(names, terms.centre.tolist(), strict=True))
    least, most = linear.limits[position].tolist()
    line = (float(linear.shifts[position]), slopes, centres, least, most)
    return dict(zip(_LINEAR_COLUMNS, line, strict=True))


def _node_row(model: Model, tree: int, number: int, node: np.record) -> dict[str, object]:
    params = model.params_of(tree)
    outputs = model.outputs[model.tree_starts[tree] + number]
    # of NumPy, which divides by a hessian or learning rate of 0
    sums = [tuple(sums) for sums in outputs] or [(node.value, node.gradient, node.cover)]
    weights, score = [0.0] * len(sums), 0.0  # of a leaf without rows, which sampling can leave
    if node.cover > 0.0:
        weights = [leaf_weight(g, h, params) for _, g, h in sums]
        for output, (value, _, _) in enumerate(sums):
            if params.learning_rate * weights[output] != value:  # constrained or smoothed
                weights[output] = value / params.learning_rate
        pairs = zip(sums, weights, strict=True)
        score = sum(similarity_at(g, h, weight, params) for (_, g, h), weight in pairs) + 0.0
        weights = [float(weight) + 0.0 for weight in weights]  # no -0.0
    return {
        "Tree": tree,
        "Node": number,
        "ID": f"{tree}-{number}",
        "Feature": "Leaf",
        "Split": np.nan,
        "Gain": outputs.value.tolist() if len(outputs) > 0 else float(node.value),
        "Cover": float(node.cover),
        "Similarity": float(score),
        "Output": weights if len(outputs) > 0 else weights[0],
    }
