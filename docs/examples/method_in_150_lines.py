"""
The method in 150 lines
=======================

Gradient boosting builds a prediction from many small trees, and each of its numbers follows from
two or three formulas. This tutorial writes the whole method in plain NumPy: first for eight
students, where every number can be checked with a pencil, then for real data, where the result is
what ``XGBRegressorLite`` and ``XGBClassifierLite`` predict.
"""

# %%
# Eight students
# --------------
#
# The data are the hours that each of them studied before the exam, and the points they got. More
# hours help, until a student is too tired.

import matplotlib.pyplot as plt
import numpy as np

hours = np.array([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0]])
points = np.array([20.0, 26.0, 34.0, 62.0, 70.0, 78.0, 58.0, 52.0])

# %%
# Step 1: a first guess, and what it leaves over
# ----------------------------------------------
#
# Boosting starts with the same prediction for everybody: the mean, 50 points. The difference
# between the truth and the prediction is the **residual**. A tree is now grown to predict the
# residuals, so that the prediction plus the output of the tree is nearer to the truth.

guess = points.mean()
residuals = points - guess
print("first guess", guess)
print("residuals  ", residuals)

figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
axis.vlines(hours[:, 0], guess, points, color="tab:red", label="residuals")
axis.plot(hours[:, 0], points, "o", color="black", label="points")
axis.axhline(guess, color="tab:blue", label="first guess")
for x, y, residual in zip(hours[:, 0], points, residuals, strict=True):
    axis.annotate(f"{residual:+.0f}", (x, (y + guess) / 2), (8, -4), textcoords="offset points")
axis.set(xlabel="hours", ylabel="points", xlim=(0.5, 8.8))
axis.legend(frameon=False)
plt.show()

# %%
# Step 2: what a leaf is worth
# ----------------------------
#
# A leaf is a group of rows that get the same output. Which output is best, and how good is it? The
# method looks at the loss of each row near the present prediction, and there it needs two numbers:
#
# - the **gradient** g, the slope of the loss. For the squared error (prediction - truth)² / 2 it is
#   prediction - truth, the residual with the other sign;
# - the **Hessian** h, how fast the slope changes. For the squared error it is 1 in every row.
#
# If a leaf adds the number w to the predictions of its rows, their loss changes by
# G w + (H + λ) w² / 2, where G and H are the sums of g and h over the rows, and λ (``reg_lambda``)
# charges for large outputs. The first of these two is where this parabola is lowest; the second is
# twice what the loss falls there::
#
#     output     = -G / (H + λ)
#     similarity = G² / (H + λ)
#
# The similarity is high if the rows of a leaf are wrong in the same direction: residuals of
# different signs cancel in G.


def output(g, h, reg_lambda):
    return -g.sum() / (h.sum() + reg_lambda)


def similarity(g, h, reg_lambda):
    return g.sum() ** 2 / (h.sum() + reg_lambda)


def squared_error(y, prediction):
    """Return gradient and Hessian of each row."""
    return prediction - y, np.ones(len(y))


g, h = squared_error(points, np.full(8, guess))
print("all eight     ", similarity(g, h, reg_lambda=1))
print("the first three", similarity(g[:3], h[:3], reg_lambda=1), "= 70² / (3 + 1)")
print("their output  ", output(g[:3], h[:3], reg_lambda=1), " = -70 / (3 + 1)")

# %%
# Step 3: where to split
# ----------------------
#
# A split sends rows with a value below a threshold to the left, the others to the right. What it
# is worth is its **gain**::
#
#     gain = similarity(left) + similarity(right) - similarity(both together)
#
# Thresholds lie halfway between neighbouring values. With the rows in the order of the feature, the
# sums of the left side are running sums, and the sums of the right side are the rest of the total.
# H is also called **cover**; a child must have a cover of ``min_child_weight`` or more. For the
# squared error cover is the number of rows.


def splits(values, g, h, reg_lambda, min_child_weight):
    """Return thresholds of a feature, the gain of each, and whether its children have cover."""
    order = np.argsort(values, kind="stable")
    values, g, h = values[order], g[order], h[order]
    G, H = np.cumsum(g)[:-1], np.cumsum(h)[:-1]
    G_right, H_right = g.sum() - G, h.sum() - H
    gain = G**2 / (H + reg_lambda) + G_right**2 / (H_right + reg_lambda)
    gain -= similarity(g, h, reg_lambda)
    is_allowed = np.minimum(H, H_right) >= min_child_weight
    is_new = values[1:] > values[:-1]  # no threshold lies between equal values
    return (values[:-1] + values[1:])[is_new] / 2, gain[is_new], is_allowed[is_new]


def print_splits(values, g, h, **settings):
    for threshold, gain, is_allowed in zip(*splits(values, g, h, **settings), strict=True):
        print(f"hours < {threshold}: gain {gain:8.3f}", "" if is_allowed else "(too little cover)")


print_splits(hours[:, 0], g, h, reg_lambda=1, min_child_weight=1)

# %%
# The best threshold is 3.5. Within each side, the same is done again. Any split makes the left side
# worse, since λ charges two leaves more than one. The right side still gains at 6.5, where the
# tired students begin.

left = hours[:, 0] < 3.5
for side in (left, ~left):
    print_splits(hours[side, 0], g[side], h[side], reg_lambda=1, min_child_weight=1)
    print()

# %%
# Step 4: grow a tree, then prune it
# ----------------------------------
#
# A tree repeats this in each of its leaves, down to ``max_depth``, as long as a gain is positive.
# Then it is **pruned** from the bottom: a split of two leaves whose gain is below γ (``gamma``) is
# removed, and then the split above it is considered, if it now has two leaves.


def grow(X, g, h, depth, reg_lambda, min_child_weight):
    """Return a node: its output and cover and, if it is split, where, its gain and children."""
    node = {"output": output(g, h, reg_lambda), "cover": h.sum(), "gain": 0.0}
    if depth == 0:
        return node
    for feature, values in enumerate(X.T):
        for threshold, gain, is_allowed in zip(
            *splits(values, g, h, reg_lambda, min_child_weight), strict=True
        ):
            if is_allowed and gain > node["gain"]:
                node |= {"gain": gain, "feature": feature, "threshold": threshold}
    if "feature" in node:
        left = X[:, node["feature"]] < node["threshold"]
        node["children"] = [
            grow(X[side], g[side], h[side], depth - 1, reg_lambda, min_child_weight)
            for side in (left, ~left)
        ]
    return node


def prune(node, gamma):
    if "children" in node:
        for child in node["children"]:
            prune(child, gamma)
        if node["gain"] < gamma and not any("children" in child for child in node["children"]):
            del node["children"]
    return node


def make_tree(X, g, h, max_depth, gamma, **settings):
    return prune(grow(X, g, h, max_depth, **settings), gamma)


def print_tree(node, indent=""):
    if "children" not in node:
        print(f"{indent}output {node['output']:.4f}, cover {node['cover']:.4g}")
        return
    print(f"{indent}feature {node['feature']} < {node['threshold']}? gain {node['gain']:.3f}")
    for child in node["children"]:
        print_tree(child, indent + "    ")


for gamma in (0, 150):
    print("gamma", gamma)
    print_tree(make_tree(hours, g, h, max_depth=2, gamma=gamma, reg_lambda=1, min_child_weight=1))

# %%
# γ = 150 removes the split at 6.5, whose gain is 116.667. The package makes the same tree; it draws
# it with the gain of each split, and the cover and output of each node.

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.displays import plot_tree

plot_tree(XGBRegressorLite(n_estimators=1, learning_rate=1, max_depth=2).fit(hours, points))
plt.show()

# %%
# Step 5: many trees
# ------------------
#
# A single tree should not decide much, so its output is multiplied by the **learning rate** before
# it is added. The next tree is grown on the new residuals, which are smaller.


def predict(node, X):
    if "children" not in node:
        return np.full(len(X), node["output"])
    left = X[:, node["feature"]] < node["threshold"]
    return np.where(left, *(predict(child, X) for child in node["children"]))


def boost(X, y, loss, start, n_estimators, learning_rate, **settings):
    """Return a function that predicts."""
    prediction, trees = np.full(len(y), start), []
    for _ in range(n_estimators):
        trees.append(make_tree(X, *loss(y, prediction), **settings))
        prediction = prediction + learning_rate * predict(trees[-1], X)
    return lambda X: start + learning_rate * sum(predict(tree, X) for tree in trees)


settings = dict(learning_rate=0.3, max_depth=2, reg_lambda=1.0, gamma=0.0, min_child_weight=1.0)
grid = np.linspace(0.5, 8.5, 500)[:, np.newaxis]
figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
axis.plot(hours[:, 0], points, "o", color="black")
for n_estimators in (1, 4, 20):
    model = boost(hours, points, squared_error, guess, n_estimators, **settings)
    axis.plot(grid[:, 0], model(grid), label=f"trees: {n_estimators}")
    print(f"trees: {n_estimators:>2}", model(hours).round(1))
axis.set(xlabel="hours", ylabel="points")
axis.legend(frameon=False)
plt.show()

# %%
# The same as the package
# -----------------------
#
# With the same settings the estimator predicts the same, for the students and for 250 patients of
# scikit-learn's diabetes data with ten features; also for patients that it was not trained on.
# (This holds for features with at most 256 values. If there are more, the package makes 256 groups
# of them, to be fast.)

from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import train_test_split

X, y = load_diabetes(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=250, random_state=0)
settings = dict(learning_rate=0.3, max_depth=3, reg_lambda=1.0, gamma=2000.0, min_child_weight=5.0)
for X, y, X_new in ((hours, points, grid), (X_train, y_train, X_test)):
    model = boost(X, y, squared_error, y.mean(), 20, **settings)
    estimator = XGBRegressorLite(n_estimators=20, **settings).fit(X, y)
    np.testing.assert_allclose(model(X_new), estimator.predict(X_new), rtol=1e-6)
print("from scratch", model(X_test[:5]).round(4))
print("sklboost    ", estimator.predict(X_test[:5]).round(4))

# %%
# Classes
# -------
#
# Now predict only whether a student passed. The model works with **log-odds** z, which may be any
# number; the probability is p = 1 / (1 + exp(-z)). The loss is the log loss, -log of the
# probability of what happened. Its slope is again prediction minus truth, p - y, and its Hessian is
# p (1 - p): a row counts most where the model is in doubt, and little where it is sure. Half of the
# students passed, so the first guess is p = 0.5, which is z = 0; each row has a residual of 0.5 or
# -0.5 and a Hessian of 0.25.

passed = np.array([0, 0, 1, 0, 1, 1, 1, 0])


def probability(z):
    return 1 / (1 + np.exp(-z))


def log_odds(p):
    return np.log(p / (1 - p))


def log_loss(y, z):
    """Return gradient and Hessian of each row."""
    p = probability(z)
    return p - y, p * (1 - p)


g, h = log_loss(passed, np.full(8, log_odds(passed.mean())))
print("residuals", -g, "  Hessians", h)
print_splits(hours[:, 0], g, h, reg_lambda=1, min_child_weight=1)

# %%
# The split at 2.5 has the largest gain, 1 / (0.5 + 1) + 1 / (1.5 + 1) - 0 = 1.067. But its left
# side has a cover of 0.5 only: with the default ``min_child_weight=1`` a child needs four rows
# here, and 4.5 is chosen. Only the loss and the first guess change; the rest of the code stays. A
# tree's output is added to the log-odds.

settings = dict(learning_rate=0.3, max_depth=1, reg_lambda=1.0, gamma=0.0, min_child_weight=1.0)
print_tree(grow(hours, g, h, depth=1, reg_lambda=1, min_child_weight=1))
model = boost(hours, passed, log_loss, log_odds(passed.mean()), 1, **settings)
print("log-odds     ", model(hours))
print("probabilities", probability(model(hours)).round(4))

# %%
# And again the package predicts the same: for the students, and for 250 tumours of scikit-learn's
# breast cancer data with thirty features, twenty trees of depth 3.

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=250, random_state=0)
for X, y, X_new, max_depth in ((hours, passed, grid, 1), (X_train, y_train, X_test, 3)):
    settings["max_depth"] = max_depth
    model = boost(X, y, log_loss, log_odds(y.mean()), 20, **settings)
    estimator = XGBClassifierLite(n_estimators=20, **settings).fit(X, y)
    np.testing.assert_allclose(
        probability(model(X_new)), estimator.predict_proba(X_new)[:, 1], rtol=1e-6
    )
print("from scratch", probability(model(X_test[:5])).round(6))
print("sklboost    ", estimator.predict_proba(X_test[:5])[:, 1].round(6))
print(f"accuracy     {estimator.score(X_test, y_test):.3f}")

# %%
# .. rubric:: What is learnt
#
# A loss enters by two numbers of each row, its gradient and its Hessian; the trees follow from
# similarity, gain, cover and output. What the package adds is speed (it adds up integers in
# histograms, on all threads), missing values, categories, more losses, and ways to stop in time.
#
# :doc:`How a tree grows </docs/explanation/how_a_tree_grows>` has the same formulas with the
# package's own numbers, :doc:`/docs/how_to/derive_by_hand` shows how any split of a model is
# derived. Next: :doc:`/docs/tutorials/first_model`.
