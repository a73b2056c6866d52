"""Fits of all kinds on all forms of data, with all that is asked of a fitted model.

Together they need every kernel in every version that a user can need.
"""

import joblib
import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from sklboost import XGBClassifierLite, XGBRegressorLite, bin_features
from sklboost.data import features

# Enough for more than 256 bins and 256 levels; and enough for a team of threads, which calls late
# kernels of its own.
FEW_ROWS, MANY_ROWS = 600, 20_000
OF_BINS = dict(max_bin=256)  # as `bin_features` was called


def make_features(n_samples=FEW_ROWS):
    random = np.random.default_rng(0)
    X = random.normal(size=(n_samples, 6)).astype(np.float32).astype(float)
    X[::7, 2] = np.nan
    return X


def fit_all(X, values, **more_settings):
    """Fit both estimators on `X` in many ways; `values` are the same, as float64."""
    n = len(values)
    signal = np.nan_to_num(values).sum(axis=1)
    labels = (signal > 0).astype(int)
    leaf_wise = dict(grow_policy="lossguide", max_depth=0, max_leaves=np.int32(8), gamma=1)
    other_types = dict(reg_lambda=np.float32(2), learning_rate=1, base_score=np.float32(1))
    limits = dict(max_delta_step=3, reg_alpha=np.float64(1), min_child_weight=2)
    limits |= dict(max_bin=np.int16(20))
    by_gradient = dict(subsample=0.3, sampling_method="gradient_based", colsample_bytree=1)
    # these trees do not go with categories
    symmetric = {} if "categorical_features" in more_settings else dict(grow_policy="symmetric")
    vector_trees = dict(multi_strategy="multi_output_tree")
    for estimator, y, weight, settings in [
        (XGBRegressorLite, signal, None, {}),
        (XGBRegressorLite, signal.astype(np.float32), np.ones(n), dict(n_jobs=2)),
        (XGBClassifierLite, labels, np.ones(n, dtype=int), dict(n_jobs=np.int64(2))),
        (XGBClassifierLite, np.digitize(signal, [-1, 1]), None, dict(random_state=1)),
        (XGBClassifierLite, np.digitize(signal, [-1, 1]), None, vector_trees),
        (XGBRegressorLite, values[:, 1:4], None, {}),
        (XGBClassifierLite, np.asfortranarray(values[:, 1:4] > 0), np.ones(n), {}),
        (XGBRegressorLite, np.arange(n) % 5, None, leaf_wise | other_types | limits),
        (XGBRegressorLite, signal, None, symmetric),
        (XGBRegressorLite, signal, None, dict(pruning="pre")),
        (XGBRegressorLite, signal, None, dict(gamma=1, keep_pruned=True)),
        (XGBRegressorLite, signal, None, dict(subsample=np.float32(0.5), colsample_bynode=0.5)),
        (XGBClassifierLite, labels, np.arange(n) + 1, by_gradient | dict(random_state=1)),
    ]:
        settings = settings | more_settings
        validation = dict(X_val=X, y_val=y, sample_weight_val=weight)
        model = estimator(n_estimators=2, **settings)
        model.fit(X, y, sample_weight=weight, **validation)
        model.predict(X)
        model.predict(X[:3])
        model.apply(X)
        list(model.staged_predict(X))
        model.trees_to_dataframe()
        if not settings.get("linear_tree"):
            model.shap_values(X[:100])
            model.shap_interaction_values(X[:3], X_background=X[3:5])
        assert len(model.feature_importances_) == model.n_features_in_


# --- forms of data -------------------------------------------------------------------------------


def fit_few_and_many():
    for n_samples in (FEW_ROWS, MANY_ROWS):
        X = make_features(n_samples)
        fit_all(X, X)


def fit_other_forms(X, folder):
    """Fit the same float64 numbers from where else they may lie."""
    memory_map = np.memmap(f"{folder}/X", dtype=float, mode="w+", shape=X.shape)
    memory_map[:] = X
    memory_map.flush()
    memory_map = np.memmap(f"{folder}/X", dtype=float, mode="r", shape=X.shape)
    for form in (pd.DataFrame(X), X.tolist(), memory_map, np.asfortranarray(X)):
        fit_all(form, X)
    fit_all(X[::-1], X[::-1])
    fit_all(X[::2], X[::2])


def fit_other_bins(X, folder):
    """Fit a BinnedMatrix in memory and in a file, whole and rows of it; predict blocks of rows."""
    B = bin_features(X)
    joblib.dump(B, f"{folder}/B")
    mapped = joblib.load(f"{folder}/B", mmap_mode="r")
    order = np.random.default_rng(0).permutation(len(X))[:500]
    block_values, features.BLOCK_VALUES = features.BLOCK_VALUES, len(X)
    for form, values in ((mapped, X), (B[:500], X[:500]), (mapped[:500], X[:500])):
        fit_all(form, values, **OF_BINS)
    fit_all(B[order], X[order], **OF_BINS)
    features.BLOCK_VALUES = block_values


def fit_single(X):
    X_single = X.astype(np.float32)
    fit_all(X_single, X)
    fit_all(pd.DataFrame(X_single), X)


def fit_the_rest(X):
    """Fit what else a user may have: every form again in bins of two bytes, sparse, categories.

    Each of these once, on few rows, is enough. What a kernel is compiled for is the types of its
    arguments, and those of a kernel that Python calls are told by the form of the data, the width
    of its bins and the settings; what a kernel calls does not depend on its fit: late kernels, too,
    are counted.
    """
    X_single = X.astype(np.float32)
    forms = [X_single, np.asfortranarray(X_single), X[::2], pd.DataFrame(X_single)]
    for max_bin in (20, 256, 1000):
        weight = np.ones(len(X))
        binned = [bin_features(X, max_bin), bin_features(X_single, max_bin, sample_weight=weight)]
        sparse = [csr_array(np.nan_to_num(values)) for values in (X, X_single)]
        for form in [X, *forms, *binned, *sparse]:
            fit_all(form, X[: form.shape[0]], max_bin=max_bin)
    declared, linear = dict(categorical_features=[0]), dict(linear_tree=True, subsample=0.5)
    for n_categories in (9, 500):
        categories = np.arange(len(X))[:, np.newaxis] % n_categories
        beside_numbers = np.hstack([categories, X])
        frame = pd.DataFrame(beside_numbers).astype({0: "category"})
        for form in (categories, np.hstack([categories, X_single]), beside_numbers, frame):
            fit_all(form, X, **declared)
            model = XGBRegressorLite(n_estimators=1, **declared, **linear)
            model.fit(form, X[:, 0], X_val=form, y_val=X[:, 0]).predict(form)
    many = np.tile(make_features(MANY_ROWS)[:, :1].astype(np.float32), (15, 1))
    XGBRegressorLite(n_estimators=1).fit(many, many[:, 0] > 0, np.ones(len(many)))
    for form in (X, X_single):  # many predictions of many trees
        model = XGBRegressorLite(n_estimators=100).fit(form, X[:, 0])
        model.predict(np.resize(form, (5000, X.shape[1])))


def kinds_of_fits(folder):
    """Return titles and calls, in the order in which versions are counted."""
    X = make_features()
    return [
        ("float64", fit_few_and_many),
        ("other forms", lambda: fit_other_forms(X, folder)),
        ("bins", lambda: fit_all(bin_features(X), X, **OF_BINS)),
        ("other bins", lambda: fit_other_bins(X, folder)),
        ("float32", lambda: fit_single(X)),
        ("the rest", lambda: fit_the_rest(X)),
    ]
