"""Small models of the installed XGBoost, with its predictions: files that are read for ever.

Run with each version of XGBoost whose files are to be kept::

    python tests/files/make_xgboost_models.py
"""

import json
from pathlib import Path

import numpy as np
import xgboost

FOLDER = Path(__file__).parent / "data"
VERSION = ".".join(xgboost.__version__.split(".")[:2])
N_ROWS = 200


def rows() -> np.ndarray:
    """Numbers, missing values, and codes of categories in the last column."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 3)).round(3)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 2] = rng.integers(0, 9, N_ROWS)
    return X.astype(np.float32)


def models() -> dict[str, xgboost.XGBModel]:
    """An estimator of each kind that files differ by."""
    small = dict(n_estimators=3, max_depth=2)
    coded = dict(feature_types=["float", "float", "c"], enable_categorical=True)
    return {
        "numbers": xgboost.XGBRegressor(**small, num_parallel_tree=2, subsample=0.5),
        "stopped": xgboost.XGBClassifier(**small | dict(n_estimators=9), early_stopping_rounds=2),
        "one_hot": xgboost.XGBRegressor(**small, **coded, max_cat_to_onehot=20),
        "sets": xgboost.XGBClassifier(**small, **coded, max_cat_to_onehot=1, booster="dart"),
        "counts": xgboost.XGBRegressor(**small, objective="count:poisson"),
        "vectors": xgboost.XGBRegressor(**small, multi_strategy="multi_output_tree"),
        "labels": xgboost.XGBClassifier(**small),
    }


def targets(kind: str, X: np.ndarray) -> np.ndarray:
    """Targets that suit an estimator."""
    y = np.nan_to_num(X[:, 0]) - np.nan_to_num(X[:, 1]) / 2 + (X[:, 2] % 3 == 0)
    if kind == "stopped":
        return (y + np.random.default_rng(1).normal(size=len(y)) > 0).astype(int)
    if kind in ("vectors", "labels"):
        both = np.column_stack([y, y**2 - 1])
        return both if kind == "vectors" else (both > 0).astype(int)
    return {"sets": np.digitize(y, [0, 1]), "counts": np.exp(y)}.get(kind, y)


def main() -> None:
    """Write the files of all models and what they predict."""
    X, predictions = rows(), {}
    for number, (kind, model) in enumerate(models().items()):
        y = targets(kind, X)
        half = N_ROWS // 2
        given = dict(eval_set=[(X[half:], y[half:])], verbose=False) if kind == "stopped" else {}
        model.fit(X[:half], y[:half], **given)
        name = f"xgboost-{VERSION}-{kind}.{('json', 'ubj')[number % 2]}"
        model.save_model(FOLDER / name)
        is_classifier = isinstance(model, xgboost.XGBClassifier)
        predict = model.predict_proba if is_classifier else model.predict
        predictions[name] = predict(X[:20]).tolist()
    (FOLDER / f"xgboost-{VERSION}.json").write_text(json.dumps(predictions) + "\n")


if __name__ == "__main__":
    main()
