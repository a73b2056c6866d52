"""
A search that bins once
=======================

Every fit of a search begins with the same work: choose cut points for each feature, and turn each
value into the number of its bin. ``bin_features`` does it once for all candidates and folds. What
does it save, and does it change what the search finds?
"""

# %%
# Data
# ----
#
# The data are thirty measurements of each of 569 tumours, which are benign or malignant.

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

# %%
# The search, on values and on bins
# ---------------------------------
#
# Both searches have the same twenty candidates and the same folds. The bins take the place of
# ``X``; nothing else changes. On small data, do not set ``n_jobs``: starting processes would take
# longer than the search.

import time

import pandas as pd
from sklearn.model_selection import RandomizedSearchCV, StratifiedKFold

from sklboost import XGBClassifierLite, bin_features

ranges = {
    "max_depth": [1, 2, 3, 4, 6],
    "learning_rate": [0.05, 0.1, 0.2, 0.3],
    "subsample": [0.5, 0.75, 1.0],
    "colsample_bynode": [0.1, 0.3, 1.0],
    "reg_lambda": [0.1, 1, 10],
}
model = XGBClassifierLite(n_estimators=60, random_state=0)
folds = StratifiedKFold(5, shuffle=True, random_state=0)


def search(data):
    settings = dict(n_iter=20, cv=folds, scoring="neg_log_loss", random_state=0)
    start = time.perf_counter()
    found = RandomizedSearchCV(model, ranges, **settings).fit(data, y_train)
    return found, time.perf_counter() - start


model.fit(X_train, y_train)  # what is compiled or loaded the first time is not to count
start = time.perf_counter()
binned = bin_features(X_train)
print(f"{binned}, made in {time.perf_counter() - start:.3f} s")
on_values, seconds_on_values = search(X_train)
on_bins, seconds_on_bins = search(binned)
for name, found, seconds in [
    ("values", on_values, seconds_on_values),
    ("bins", on_bins, seconds_on_bins),
]:
    print(
        f"on {name:<7}{seconds:5.2f} s   log loss {-found.best_score_:.4f} in cross-validation, "
        f"{-found.score(X_test, y_test):.4f} on test rows"
    )

# %%
# Does the search find the same?
# ------------------------------
#
# Each point is a candidate. With raw values a fold chooses cut points from its own rows; with bins
# they come from all rows, so the trees are not quite the same. Bad candidates stay bad. Among the
# good ones the order changes, as it would with other folds: their means differ by less than one
# standard error.

import matplotlib.pyplot as plt
import numpy as np

losses = np.array([-found.cv_results_["mean_test_score"] for found in (on_values, on_bins)])
figure, axis = plt.subplots(figsize=(5, 4.5), layout="constrained")
axis.scatter(*losses)
axis.axline((0.1, 0.1), slope=1, color="silver", zorder=0)
axis.set(xlabel="log loss, fitted on values", ylabel="log loss, fitted on bins")
plt.show()
error = on_values.cv_results_["std_test_score"].mean() / (folds.n_splits - 1) ** 0.5
print(f"candidates: from {losses[0].min():.3f} to {losses[0].max():.3f}")
print(f"values or bins: {np.abs(losses[0] - losses[1]).mean():.3f} apart on average")
print(f"standard error of a candidate's mean: {error:.3f}")

# %%
# What mattered?
# --------------
#
# These are the means over the candidates that share a value. This is only a first look: twenty
# candidates are few, and the other parameters vary, too.

results = pd.DataFrame(on_bins.cv_results_)
for name in ("max_depth", "learning_rate", "colsample_bynode"):
    print(results.groupby(f"param_{name}")["mean_test_score"].mean().mul(-1).round(3).to_string())

# %%
# .. rubric:: What is learnt
#
# Binning once saves a part of each fit, which is larger if trees are few and small. It changes the
# scores by less than their uncertainty. The cut points then depend on the features of the rows that
# a fold holds out, never on their targets; the test rows above were not binned with them.
#
# :doc:`Search parameters fast </docs/how_to/search_parameters_fast>` says exactly what the folds
# have seen. The order in which to tune is in :doc:`the user guide </docs/guide/tuning>`.
