"""Files that LightGBM 4.7 has written are read without it, and predict the same for ever."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sklboost import ModelFileError, from_lightgbm

# Numbers that a file should not have, or not there.
STRANGE = [
    b"-1",
    b"0",
    b"1",
    b"99999999999999999999",
    b"nan",
    b"-inf",
    b"1e308",
    b"4294967295",
    b"",
]
FILES = sorted((Path(__file__).parent / "data").glob("lightgbm_*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_predictions_are_those_of_lightgbm(path):
    known = json.loads(path.with_suffix(".json").read_text("utf-8"))
    rows = np.array(known["rows"], dtype=object)
    model = from_lightgbm(path)
    if hasattr(model, "categories_"):
        rows = pd.DataFrame(rows, columns=model.feature_names_in_)
        rows = rows.astype({"a_b": float, "kind": "category"})
    else:
        rows = rows.astype(np.float64)
    predict = getattr(model, "predict_proba", model.predict)
    np.testing.assert_allclose(predict(rows), known["predictions"], rtol=1e-12)


def test_there_are_files():
    assert [path.stem for path in FILES] == [
        f"lightgbm_{kind}" for kind in ("categories", "forest", "linear")
    ]


def _damaged(data, rng):
    """Return a file with a few bytes, numbers or lines changed."""
    for _ in range(rng.integers(1, 4)):
        kind = rng.integers(3)
        if kind == 0:
            place = int(rng.integers(len(data)))
            data = data[:place] + bytes([rng.integers(256)]) + data[place + 1 :]
        elif kind == 1:
            number = rng.choice(list(re.finditer(rb"-?[\d.]+(e[-+]?\d+)?", data)))
            data = data[: number.start()] + rng.choice(STRANGE) + data[number.end() :]
        else:
            lines = data.split(b"\n")
            moved = lines.pop(rng.integers(len(lines)))
            data = b"\n".join(lines[:-1] + [moved] * rng.integers(2) + lines[-1:])
    return data


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_damaged_files_are_refused_or_predict(path):
    data, rng = path.read_bytes(), np.random.default_rng(0)
    n_refused = 0
    for _ in range(300):
        try:
            model = from_lightgbm(_damaged(data, rng))
        except ModelFileError:
            n_refused += 1
        else:
            rows = np.array([[np.nan], [0.0], [1e300]]) * np.ones(model.n_features_in_)
            if not hasattr(model, "categories_"):
                assert len(model.predict(rows, validate_features=False)) == len(rows)
    assert 100 < n_refused < 300  # the others changed what is not read, or a value
