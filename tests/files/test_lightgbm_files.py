"""Files that LightGBM 4.7 has written are read without it, and predict the same for ever."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sklboost import from_lightgbm

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
