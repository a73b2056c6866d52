"""The reader that the documentation shows predicts the same bits as the package."""

import re

import numpy as np
import pytest

from tests.conftest import ROOT
from tests.kinds_of_models import KINDS, data, file_of

PAGE = (ROOT / "docs" / "how_to" / "read_a_model_file.md").read_text(encoding="utf-8")
(READER,) = re.findall(r"^```python\n(import json\n.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
# numbers only, one value in a leaf
READABLE = (
    *("single", "more than 256 bins", "several targets", "several labels", "monotone", "pruned"),
    *("leaf by leaf", "forest", "dart", "early stopping", "quantiles", "multi:softprob"),
)


def test_it_is_short_and_needs_nothing_but_numpy():
    code = [line for line in READER.splitlines() if line.strip()]
    assert len(code) <= 36
    assert re.findall(r"^(?:import|from) (\w+)", READER, re.MULTILINE) == ["json", "numpy"]


@pytest.mark.parametrize("name", READABLE)
def test_scores_have_the_same_bits(name, tmp_path):
    kind = KINDS[name]
    model, (X, _) = kind.fit(), data(kind.features)
    path = tmp_path / "model.json"
    path.write_bytes(file_of(model, "json"))
    reader = {}
    exec(READER, reader)
    scores = reader["raw_scores"](reader["read_model"](path), X)
    # several quantiles are sorted afterwards
    expected = model.predict(X, output_margin=True).reshape(len(X), -1)
    if name == "quantiles":
        scores = np.sort(scores, axis=1)
    np.testing.assert_array_equal(scores, expected)
