"""Damaged model files: each is refused, or is a model that works, and nothing crashes or hangs.

``python -m tests.files.fuzzing --cases 100000 --seed 0`` damages the golden files, and those of
XGBoost and LightGBM, in as many ways,
in processes of their own that are watched, and prints the cases that failed; the files are kept.
"""

import argparse
import collections
import copy
import json
import math
import os
import pickle
import random
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tests.files.make_golden_files import EXPECTED, GOLDEN
from tests.watched import watch, work

DATA = GOLDEN.parent / "data"
ALLOWED = (ValueError, TypeError)  # ModelFileError is a ValueError


# --- damaged files

_NUMBERS = [0, -1, 1, 2, 3, 255, 2**24, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, -(2**63), 2**63]
_NUMBERS += [10**30, 10**400, 0.5, -0.5, 1.0, 1e300, -1e300, 1.7e308, 5e-324, math.nan, math.inf]
_TYPED: list[Any] = [
    {"int": "9" * 4000},
    {"int": "-7"},
    {"float": "NaN"},
    {"float": "Infinity"},
    {"set": [1, 2]},
    {"frozenset": [{"tuple": [1, "a"]}]},
    {"tuple": []},
    {"dict": [["a", 1]]},
    {"dict": [[[], 1]]},
    {"Decimal": "1E+999999999"},
    {"Decimal": "sNaN"},
    {"date": "2020-01-01"},
    {"datetime": "2020-01-01T00:00:00+00:00"},
    {"timedelta": [10**9, 0, 0]},
    {"pandas.Interval": [0, 1, "left"]},
    {"time": "12:00:01"},
    {"UUID": "00000000-0000-0000-0000-000000000005"},
    {"bytes": "00ff"},
    {"pandas.Interval": [1, 0, "left"]},
    {"pandas.Timestamp": "now"},
    {"pandas.Timestamp": {"scalar": {"dtype": "<M8[ns]", "shape": [1], "values": [0]}}},
    {"array": {"dtype": "<U9999", "shape": [1], "values": [""]}},
    {"array": {"dtype": "<f8", "shape": [10**18, 0], "values": []}},
    {"array": {"dtype": "|O", "shape": [2], "values": [1, "a"]}},
    {"array": {"dtype": "<i8", "shape": [3], "values": [0, 1, -1]}},
    {"scalar": {"dtype": "<m8[D]", "shape": [1], "values": [5]}},
    {"scalar": {"dtype": "<f4", "shape": [0], "values": []}},
    {"scalar": {"dtype": "<f1", "shape": [1], "values": [1]}},
]
_OTHERS: list[Any] = [None, True, False, "", "a", "NaN", "\ud800", "<script>", [], {}, [[]], [0]]
_OTHERS += ["reg:gamma", "multi:softprob", "XGBClassifierLite", "XGBRFRegressorLite", "category"]


class Case(NamedTuple):
    """A damaged file, and the name of the golden file that it was."""

    data: bytes
    origin: str


class Corpus:
    """The files that are damaged, as bytes and as documents: all, or those of a pattern."""

    def __init__(self, pattern: str = "*") -> None:
        from sklboost.files.documents import parse_document

        paths = sorted(path for path in GOLDEN.iterdir() if path != EXPECTED)
        paths += sorted([*DATA.glob("xgboost-*-*"), *DATA.glob("lightgbm_*.txt")])
        self.files = {path.name: path.read_bytes() for path in paths if path.match(pattern)}
        self.documents = {
            name: _as_lists(parse_document(data.replace(b'"rest"', b'"Rest"'), name))
            for name, data in self.files.items()
            if not name.endswith(".txt")
        }

    def case(self, seed: int, number: int) -> Case:
        """Return a damaged file, always the same one for a seed and number."""
        draw = random.Random(f"{seed}-{number}")
        name = draw.choice(list(self.files))
        if draw.random() < 0.2 or name not in self.documents:
            return Case(self._damaged_bytes(name, draw), name)
        document = copy.deepcopy(self.documents[name])
        for _ in range(draw.choice([1, 1, 1, 2, 3])):
            self._damage(document, draw)
        return Case(_written(document, draw), name)

    def _damaged_bytes(self, name: str, draw: random.Random) -> bytes:
        data = bytearray(self.files[name])
        for _ in range(draw.choice([1, 1, 2, 5])):
            i, k = sorted(draw.randrange(len(data) + 1) for _ in "ik")
            kind = draw.randrange(8)
            if kind == 0 and i < len(data):
                data[i] ^= 1 << draw.randrange(8)
            elif kind == 1:
                del data[i : min(k, i + draw.choice([1, 2, 8, 10**6]))]
            elif kind == 2:
                data[i:i] = draw.randbytes(draw.choice([1, 2, 8]))
            elif kind == 3:
                data[i:i] = data[i : min(k, i + 100)]
            elif kind == 4:
                other = self.files[draw.choice(list(self.files))]
                data[i:] = other[draw.randrange(len(other)) :]
            elif kind >= 6 and (numbers := list(re.finditer(rb"-?\d[\d.]*(e[-+]?\d+)?", data))):
                number = draw.choice(numbers)
                data[number.start() : number.end()] = str(draw.choice(_NUMBERS)).encode()
            else:
                data[i:i] = draw.choice(
                    [b"-", b"9" * 5000, b"[" * 5000, b'{"a":', b"NaN", b"1e999"]
                )
        return bytes(data)

    def _damage(self, document: Any, draw: random.Random) -> None:
        places = list(_places(document))
        if not places:  # all of it is gone
            return
        (owner, key), kind = draw.choice(places), draw.randrange(8)
        value = owner[key]
        if isinstance(value, list) and draw.random() < 0.9:
            _damage_list(value, draw)
        elif kind == 0:
            del owner[key]
        elif kind == 1 and isinstance(owner, dict):
            owner[draw.choice(["rest", "values", "", key * 2, *owner])] = owner.pop(key)
        elif kind == 2:  # the same of another file
            other, other_key = draw.choice(
                list(_places(draw.choice(list(self.documents.values()))))
            )
            same = [o for o, k in _places(draw.choice(list(self.documents.values()))) if k == key]
            owner[key] = copy.deepcopy(draw.choice(same)[key] if same else other[other_key])
        elif kind == 3:
            other, other_key = draw.choice(places)
            owner[key], other[other_key] = copy.deepcopy((other[other_key], value))
        else:
            owner[key] = _another(value, draw)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield containers and the keys of what is in them; of long lists some."""
    keys = list(value) if isinstance(value, dict) else range(len(value))[:4]
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def _damage_list(values: list[Any], draw: random.Random) -> None:
    i = draw.randrange(len(values) + 1)
    kind = draw.randrange(8)
    if kind == 0:
        values.insert(i, draw.choice([*_NUMBERS, *_OTHERS]))
    elif kind == 1:
        del values[i : i + draw.choice([1, 2, 10**6])]
    elif kind == 2:
        values.extend(values * draw.choice([1, 10]))
    elif kind == 3:
        draw.shuffle(values)
    elif i < len(values):
        values[i] = _another(values[i], draw)


def _another(value: Any, draw: random.Random) -> Any:
    if isinstance(value, int | float) and abs(value) < 1e300 and draw.random() < 0.5:
        near = [value + 1, value - 1, -value, value * 2, float(value)]
        return draw.choice(near)
    return copy.deepcopy(draw.choice(draw.choice([_NUMBERS, _NUMBERS, _TYPED, _OTHERS])))


def _written(document: Any, draw: random.Random) -> bytes:
    """Return a document as JSON or UBJSON; sometimes a key of it occurs twice."""
    from sklboost.files.documents import write_ubjson

    if draw.random() < 0.3:
        try:
            return write_ubjson(_as_arrays(document, draw))
        except (ValueError, OverflowError, TypeError, KeyError):
            pass  # what UBJSON cannot say
        except Exception as error:
            if type(error).__name__ != "error":  # of struct
                raise
    text = json.dumps(document, separators=draw.choice([None, (",", ":")]))
    if draw.random() < 0.02:
        parts = text.split(',"')
        parts.insert(draw.randrange(len(parts)), draw.choice(parts))
        text = ',"'.join(parts)
    return text.encode("utf-8")


def _as_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_lists(of_key) for key, of_key in value.items()}
    if isinstance(value, list | np.ndarray):
        return [_as_lists(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value


def _as_arrays(value: Any, draw: random.Random) -> Any:
    if isinstance(value, dict):
        return {key: _as_arrays(of_key, draw) for key, of_key in value.items()}
    if not isinstance(value, list):
        return value
    if value and draw.random() < 0.7:
        for kind, dtypes in ((int, ("i1", "u1", "i2", "i4", "i8")), (float, ("f8", "f4"))):
            if set(map(type, value)) == {kind}:
                return _as_array(np.array(value), [*map(np.dtype, dtypes)], draw)
    return [_as_arrays(part, draw) for part in value]


@np.errstate(all="ignore")
def _as_array(array: np.ndarray, dtypes: list[np.dtype], draw: random.Random) -> Any:
    """Return a typed array, seldom of a type that does not hold the values."""
    if array.dtype.kind not in "if":  # integers that are too large
        return array.tolist()
    fitting = [of for of in dtypes if np.array_equal(array.astype(of), array, equal_nan=True)]
    return array.astype(draw.choice(dtypes if draw.random() < 0.005 or not fitting else fitting))


# --- what must be true of them


def check(case: Case, draw: random.Random, *, is_thorough: bool) -> str:
    """Return "refused" or "loaded"; raise for anything that must not be.

    Parameters
    ----------
    case : Case
    draw : Random
        Which of the methods are called, if not all are.
    is_thorough : bool
    """
    from sklboost import ModelFileError

    try:
        with _only_allowed("load_model"):
            model = _load(case)
    except ModelFileError:
        return "refused"
    except ALLOWED as error:
        if "sklboost" not in str(error):  # where the file is wrong
            raise AssertionError(f"load_model: {type(error).__name__}: {error}") from error
        return "refused"
    X = _rows_for(model, case.origin)
    try:
        _check_predictions(model, X)
    except ALLOWED as error:
        # which rows fit is for the model to say, if the damage is to that
        known = _load(Case(Corpus().files[case.origin], case.origin))
        if _features_of(model) == _features_of(known):
            raise AssertionError(f"predict: {type(error).__name__}: {error}") from error
    _check_states(model, draw, is_thorough)
    calls = _calls(model, X)
    for name in calls if is_thorough else draw.sample(sorted(calls), 1):
        try:
            with _only_allowed(name):
                calls[name]()
        except ALLOWED:
            pass
    return "loaded"


def _load(case: Case) -> Any:
    from sklboost import from_lightgbm, load_model

    return (from_lightgbm if case.origin.endswith(".txt") else load_model)(case.data)


def _features_of(model: Any) -> tuple[Any, ...]:
    features = model._trained.features
    return features.n_features, str(features.names), repr(features.encodings), features.missing


class _only_allowed:  # noqa: N801, reads as a function
    """Turns exceptions that no user should see into failures that say where they come from."""

    def __init__(self, name: str):
        self.name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> None:
        if error is not None and not isinstance(error, (*ALLOWED, AssertionError)):
            raise AssertionError(f"{self.name}: {type(error).__name__}: {error}") from error


def _rows_for(model: Any, origin: str) -> Any:
    """Return rows of the golden model, or numbers, as many as the model has features."""
    from tests.files.golden_models import X, rows_by_file

    features = model._trained.features
    if origin == "lightgbm_categories.txt":
        rows = pd.DataFrame({"a_b": X[:20, 0], "kind": pd.Categorical([*"x?"] * 10)})
    elif origin.startswith(("xgboost-", "lightgbm_")):
        rows = np.column_stack([X[:20, :2], np.arange(20) % 9])
    else:
        rows = rows_by_file(origin)[:20]
    if features.encodings is None and features.names is None and features.n_features < 1000:
        values = np.linspace(-2.0, 2.0, 20 * features.n_features).reshape(20, -1)
        values[::5] = np.nan
        rows = rows if getattr(rows, "shape", ()) == values.shape else values
    return rows


def _check_predictions(model: Any, X: Any) -> None:
    """Check that raw scores are between the sums of the least and of the largest leaf values."""
    with _only_allowed("predict"):
        margin = np.asarray(model.predict(X, output_margin=True))
        model.predict(X[:1])
        model.predict(X)
        leaves = model.apply(X)
        stages = list(model.staged_predict(X))
        chances = np.asarray(model.predict_proba(X) if hasattr(model, "predict_proba") else 0.5)
    assert np.isfinite(chances).all(), "a probability is not finite"
    assert ((chances >= 0.0) & (chances <= 1.0)).all(), "no probability"
    trained, arrays = model._trained, model.model_
    assert len(stages) == arrays.n_rounds
    starts = arrays.tree_starts
    nodes = arrays.nodes.left[starts[:-1] + leaves]
    assert (nodes < 0).all(), "apply gives a node that is no leaf"
    largest = np.maximum.reduceat(np.abs(arrays.values), starts[:-1], axis=1).sum()
    if arrays.linear is not None:
        limits = np.abs(arrays.linear.limits).max(axis=1)
        largest += np.maximum.reduceat(limits, starts[:-1]).sum()
    largest += np.abs(arrays.base_score).max() + np.abs(trained.shift).max()
    assert not np.isnan(margin).any(), "a raw score is NaN"
    assert (np.abs(margin) <= largest * (1 + 1e-9)).all(), "a raw score is out of range"
    assert np.isfinite(largest) or arrays.linear is not None


def _check_states(model: Any, draw: random.Random, is_thorough: bool) -> None:
    """Check that the model can be written, and is the same when it is read."""
    import io

    from sklboost import load_model

    if not is_thorough and draw.random() < 0.7:
        return
    file = io.BytesIO()
    with _only_allowed("save_model"):
        raw_format = draw.choice(["json", "ubj"])
        try:
            model.save_model(file, format="sklboost", raw_format=raw_format)
        except UnicodeEncodeError:
            return
        again = load_model(file.getvalue())
    assert again.model_.nodes.tobytes() == model.model_.nodes.tobytes(), "another model is saved"


def _calls(model: Any, X: Any) -> dict[str, Callable[[], Any]]:
    from sklearn.base import clone

    tree = model.model_.n_trees - 1
    return {
        "shap_values": lambda: model.shap_values(X),
        "shap_interaction_values": lambda: model.shap_interaction_values(X),
        "trees_to_dataframe": model.trees_to_dataframe,
        "explain_prediction": lambda: str(model.explain_prediction(X[:1])),
        "explain_split": lambda: str(model.explain_split(tree, 0)),
        "feature_importances_": lambda: model.feature_importances_,
        "to_html": lambda: model.to_html(os.devnull),
        "to_html with rows": lambda: model.to_html(os.devnull, X),
        "pickle": lambda: pickle.loads(pickle.dumps(model)),
        "deepcopy": lambda: copy.deepcopy(model),
        "clone": lambda: clone(model),
        "repr": lambda: repr(model) + repr(model.get_params()) + str(vars(model)),
        "save for XGBoost": lambda: model.save_model(os.devnull, raw_format="json"),
        "verify_monotone": lambda: model.verify_monotone({0: 1}),
    }


# --- in processes of their own


def run_cases(corpus: Corpus, seed: int, numbers: range, *, is_thorough: bool) -> dict[str, int]:
    """Check cases in this process; AssertionError for the first that fails."""
    counts: collections.Counter[str] = collections.Counter()
    for number in numbers:
        try:
            counts[_outcome(corpus, seed, number, is_thorough)] += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}, case {number}: {error}") from error
    return dict(counts)


def _outcome(corpus: Corpus, seed: int, number: int, is_thorough: bool) -> str:
    case, draw = corpus.case(seed, number), random.Random(number)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return check(case, draw, is_thorough=is_thorough)


def watch_cases(
    seed: int, numbers: range, is_thorough: bool, interpreted: bool
) -> Iterator[tuple[int, str]]:
    """Yield (number, outcome) of cases that are checked in a process of their own."""
    arguments = ["--seed", str(seed), *["--thorough"] * is_thorough]
    return watch("tests.files.fuzzing", arguments, numbers, interpreted=interpreted)


def main() -> None:
    """Check many cases, and print those that failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--thorough", action="store_true", help="call all methods of each model")
    parser.add_argument("--interpreted", action="store_true", help="without compiled kernels")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "damaged_models")
    parser.add_argument("--work", type=int, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        corpus = Corpus()
        work(lambda n: _outcome(corpus, given.seed, n, given.thorough), range(*given.work))
        return
    corpus, counts, start = Corpus(), collections.Counter[str](), time.perf_counter()
    numbers = range(given.first, given.first + given.cases)
    for number, outcome in watch_cases(given.seed, numbers, given.thorough, given.interpreted):
        counts[outcome.split()[0]] += 1
        if outcome.startswith("FAILED"):
            case = corpus.case(given.seed, number)
            given.keep.mkdir(exist_ok=True)
            path = given.keep / f"{given.seed}-{number}"
            path.write_bytes(case.data)
            print(f"seed {given.seed} case {number} ({case.origin}): {outcome}; kept as {path}")
    print(f"{sum(counts.values())} cases, seed {given.seed}: {dict(counts)}", end=" ")
    print(f"in {time.perf_counter() - start:.0f} s")
    sys.exit(counts["FAILED"] > 0)


if __name__ == "__main__":
    main()
