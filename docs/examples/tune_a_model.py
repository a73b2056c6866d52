"""
Tune a model with GridSearchCV
==============================

Which depth and which learning rate are best? Try several on parts of the training rows, choose, and
judge the choice once, on rows that had no influence on it.
"""

# %%
# Data and a first score
# ----------------------
#
# The data are ten measurements of each of 442 patients, and how far their diabetes had progressed a
# year later. The defaults are XGBoost's: a learning rate of 0.3 and a depth of 6, too much for so
# little data. R² is the share of the variance that is explained.

from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split

from sklboost import XGBRegressorLite, bin_features

X, y = load_diabetes(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
before = cross_val_score(XGBRegressorLite(), X_train, y_train)
print(f"R² of five folds, with the defaults: {before.round(3)}, mean {before.mean():.3f}")

# %%
# A grid
# ------
#
# The depth decides how many features a tree can combine, and the learning rate how much of each
# tree is added. For squared error, ``min_child_weight`` is the least number of rows of a child.

grid = {
    "max_depth": [1, 2, 3, 4],
    "learning_rate": [0.03, 0.1, 0.3],
    "min_child_weight": [1, 10],
}
search = GridSearchCV(XGBRegressorLite(), grid)
search.fit(X_train, y_train)
print(f"{len(search.cv_results_['params'])} candidates, best R² {search.best_score_:.3f} with")
print(search.best_params_)

# %%
# What does the grid say?
# -----------------------
#
# Look at the whole grid, not only at the best candidate: its neighbours should be good, too.

import matplotlib.pyplot as plt
import pandas as pd

results = pd.DataFrame(search.cv_results_)
least_weight = search.best_params_["min_child_weight"]
table = results[results["param_min_child_weight"] == least_weight].pivot_table(
    index="param_max_depth", columns="param_learning_rate", values="mean_test_score"
)

figure, axis = plt.subplots(figsize=(5, 3.5), layout="constrained")
picture = axis.imshow(table, aspect="auto")
for row, depth in enumerate(table.index):
    for column, rate in enumerate(table.columns):
        axis.text(
            column,
            row,
            f"{table.loc[depth, rate]:.2f}",
            ha="center",
            va="center",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8},
        )
axis.set_xticks(range(table.shape[1]), table.columns)
axis.set_yticks(range(table.shape[0]), table.index)
axis.set(xlabel="learning_rate", ylabel="max_depth", title=f"min_child_weight={least_weight}")
figure.colorbar(picture, label="R² in cross-validation")
plt.show()

# %%
# Leave the number of trees to early stopping
# -------------------------------------------
#
# A small learning rate needs more trees, so the number of trees should not be in the grid. Allow
# many: each fit holds out a tenth of its rows and stops by itself, inside the search as well.

stopping = XGBRegressorLite(n_estimators=2000, early_stopping_rounds=20, random_state=0)
search = GridSearchCV(stopping, grid)
search.fit(X_train, y_train)
best = search.best_estimator_
print(f"best R² {search.best_score_:.3f} with {search.best_params_}: {best.n_estimators_} trees")

# %%
# Bin once
# --------
#
# Every fit begins by turning values into bins. ``bin_features`` does it once for all candidates and
# folds; its result takes the place of ``X``. The folds then share their cut points, which depend on
# the features, never on the targets, of the held-out rows
# (:doc:`what to know about it </docs/how_to/search_parameters_fast>`).

binned_search = GridSearchCV(stopping, grid)
binned_search.fit(bin_features(X_train), y_train)
print(f"best R² {binned_search.best_score_:.3f} with {binned_search.best_params_}")

# %%
# Judge the choice
# ----------------
#
# The best of many scores is too good, since it is the best partly by luck. The test rows had no
# influence on the choice.

defaults = XGBRegressorLite().fit(X_train, y_train)
print(f"R² on test rows, tuned:    {search.score(X_test, y_test):.3f}")
print(f"              defaults:    {defaults.score(X_test, y_test):.3f}")
