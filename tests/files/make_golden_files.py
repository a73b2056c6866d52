"""Make the golden files: ``python -m tests.files.make_golden_files``.

A file that is there stays: later versions have to read it. Files of a new kind of model are added,
with what the model predicts.
"""

import json
from pathlib import Path

from sklboost import load_model
from tests.files.golden_models import ALL, BY_XGBOOST, file_name, results_of

GOLDEN = Path(__file__).parent / "golden"

EXPECTED = GOLDEN / "expected.json"
# In both forms; all others in one of them, every fourth in UBJSON.
IN_BOTH = {"regression", "linear leaves", "categories of text"}
# As XGBoost reads them, too.
FOR_XGBOOST = {"regression", "three classes", "declared categories", "dart", "vector trees"}


def formats_of(name: str) -> list[str]:
    """Return the forms in which there is a golden file of a model."""
    of_turn = ("json", "json", "json", "ubj")[[*ALL].index(name) % 4]
    return ["json", "ubj"] if name in IN_BOTH else [of_turn]


def main() -> None:
    """Make the files that are not there."""
    GOLDEN.mkdir(exist_ok=True)
    expected = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    for name, make in ALL.items():
        paths = [GOLDEN / file_name(name, raw_format) for raw_format in formats_of(name)]
        if any(path.exists() for path in paths):
            continue
        model = make()
        for path in paths:
            if name in BY_XGBOOST:
                model.save_model(path)
            else:
                model.save_model(path, format="xgboost" if name in FOR_XGBOOST else "sklboost")
        expected[name] = results_of(load_model(paths[0]), name)
        lines = (f"{json.dumps(of)}: {json.dumps(results)}" for of, results in expected.items())
        EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
