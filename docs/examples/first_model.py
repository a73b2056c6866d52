"""
Your first model in five minutes
================================

This tutorial takes a classifier from data to predictions: fit it, judge it, see how it learnt, and
read one of its trees. All you need is ``pip install "sklboost[demo]"``, which adds pandas and
matplotlib.

The very first fit on a machine compiles what it needs, which takes some fifteen seconds; from then
on it is loaded from disk.
"""

# %%
# Data
# ----
#
# The data are thirty measurements of each of 569 tumours, and whether it was benign (1) or
# malignant (0). A quarter of the rows is kept back, to judge the model on rows that it has not
# seen.

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
X_train.iloc[:3, :5]

# %%
# Fit and predict
# ---------------
#
# An estimator has the methods of every scikit-learn estimator, and its parameters have the names
# they have in XGBoost. There is no need to scale the features, to code text columns marked as
# categories, or to fill in missing values.

from sklboost import XGBClassifierLite

model = XGBClassifierLite(n_estimators=50, learning_rate=0.1, max_depth=3)
model.fit(X_train, y_train)
print("classes      ", model.predict(X_test)[:5])
print("probabilities", model.predict_proba(X_test)[:5, 1].round(3))
print("truth        ", y_test.to_numpy()[:5])

# %%
# How good is it?
# ---------------
#
# ``score`` is the share of rows that are right. The log loss looks at the probabilities: it asks
# for confidence where the model is right, and for doubt where it is wrong.

from sklearn.metrics import log_loss

print(f"accuracy {model.score(X_test, y_test):.3f}")
print(f"log loss {log_loss(y_test, model.predict_proba(X_test)):.3f}")

# %%
# How did it learn?
# -----------------
#
# Boosting adds one small tree after the other, and each corrects the errors that the trees before
# it left. On the training rows the loss keeps falling; on other rows it falls at first, and then no
# longer. ``staged_predict_proba`` gives the probabilities after each tree.

import matplotlib.pyplot as plt

figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
for name, X_part, y_part in [("training", X_train, y_train), ("test", X_test, y_test)]:
    losses = [log_loss(y_part, p) for p in model.staged_predict_proba(X_part)]
    axis.plot(range(1, len(losses) + 1), losses, label=f"{name} rows")
axis.set(xlabel="trees", ylabel="log loss", ylim=(0, None))
axis.legend(frameon=False)
plt.show()

# %%
# How many trees?
# ---------------
#
# Do not guess: allow many trees, and stop when the loss on rows that are not trained on no longer
# improves. Ten rounds of patience are enough here. A tenth of the training rows is held out for
# that; with ``refit=True`` the model is then trained on all of them, for the best number of rounds.

model = XGBClassifierLite(
    n_estimators=1000,
    learning_rate=0.1,
    max_depth=3,
    early_stopping_rounds=10,
    refit=True,
    random_state=0,
)
model.fit(X_train, y_train)
loss = log_loss(y_test, model.predict_proba(X_test))
print(f"{model.n_estimators_} trees, log loss {loss:.3f}")

# %%
# This is the loss on the held-out rows, with the best round marked:

from sklboost.displays import plot_importance, plot_learning_curve, plot_tree

plot_learning_curve(model)
plt.show()

# %%
# What does it look at?
# ---------------------
#
# A feature is important if splits on it reduce the loss much: its mean gain
# (:doc:`other importances, and what chance reaches </docs/how_to/judge_features>`).

plot_importance(model, importance_type="gain")
plt.show()

# %%
# Read a tree
# -----------
#
# Every node shows the numbers by which its split was chosen: its cover (how much the rows in it
# count), the gain of its split, and its value, which it adds to the log-odds.

small = XGBClassifierLite(n_estimators=1, learning_rate=0.1, max_depth=2).fit(X_train, y_train)
plot_tree(small)
plt.show()

# %%
# Where does the split at the top come from? Each number is derived.

print(small.explain_split(0, 0))

# %%
# :doc:`How a tree grows </docs/explanation/how_a_tree_grows>` has the formulas, with numbers to
# check by hand. Next: :doc:`/docs/tutorials/tune_a_model`.
