"""
Why does the model say so? SHAP values
======================================

A model forecasts 800 bicycles for an hour. How much of that is due to the time of day, and how much
to the weather? SHAP values divide each forecast among the features, exactly, and over many rows
they show what the model has learnt, interactions included.
"""

# %%
# Data and model
# --------------

import numpy as np
import pandas as pd

from sklboost import XGBRegressorLite

bike = pd.read_csv("../data/bike.csv.gz", parse_dates=["date"])
bike["weather"] = bike["weather"].astype("category")
X, y = bike.drop(columns="count"), bike["count"]
test = bike["date"].dt.day > 20
model = XGBRegressorLite(n_estimators=100, learning_rate=0.1, max_depth=5)
model.fit(X[~test], y[~test])
print(f"R² on other days: {model.score(X[test], y[test]):.3f}")

# %%
# One forecast
# ------------
#
# ``pred_contribs=True`` gives the contribution of each feature to the forecast of a row, and in the
# last column the mean forecast. Together they add up to the forecast.

row = X[(X["date"] == "2012-09-25") & (X["hour"] == 17)]
parts = model.predict(row, pred_contribs=True)[0]
print(f"mean {parts[-1]:.0f}")
for feature in np.argsort(-np.abs(parts[:-1])):
    print(f"{parts[feature]:+7.0f}   {X.columns[feature]} = {row.iloc[0, feature]}")
print(f"forecast {parts.sum():.0f} = {model.predict(row)[0]:.0f}")

# %%
# All forecasts
# -------------
#
# The plot shows the contribution of the hour, a point for each row. On working days people ride at
# eight and at five or six, on other days at midday: the effect of the hour depends on the kind of
# day.

import matplotlib.pyplot as plt

sample = X[test]
values = model.shap_values(sample)
hour = X.columns.get_loc("hour")
jitter = np.random.default_rng(0).uniform(-0.3, 0.3, len(sample))

figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
for day, name in [(1, "working days"), (0, "other days")]:
    rows = (sample["workingday"] == day).to_numpy()
    axis.scatter(
        sample["hour"][rows] + jitter[rows], values[rows, hour], s=4, alpha=0.5, label=name
    )
axis.axhline(0, color="silver", zorder=0)
axis.set(xlabel="hour", ylabel="added to the forecast", xticks=range(0, 24, 3))
axis.legend(frameon=False, markerscale=4)
plt.show()

# %%
# Which features act together?
# ----------------------------
#
# Interaction values divide each contribution into the effect of the feature alone and its joint
# effects with each other feature. These are the strongest pairs, on a hundred rows:

pairs = np.abs(model.shap_interaction_values(sample[:100])).mean(axis=0)
first, second = np.triu_indices(len(pairs), k=1)
for place in np.argsort(-pairs[first, second])[:4]:
    names = X.columns[first[place]], X.columns[second[place]]
    print(f"{' and '.join(names):<28}{2 * pairs[first[place], second[place]]:.0f} bicycles")

# %%
# Which features matter?
# ----------------------
#
# The plots of the shap package take ``shap_explanation``. Its bars are the mean absolute values.

import shap

figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
shap.plots.bar(model.shap_explanation(sample), ax=axis, show=False)
plt.show()

# %%
# .. rubric:: What is learnt
#
# The model has found the two kinds of days by itself, the growth over the two years (``date``), and
# that people like it warm. SHAP values describe the model, not the world: a feature also gets
# credit for what is correlated with it in the data.
#
# :doc:`Explain predictions </docs/how_to/explain_predictions>` compares the two definitions of SHAP
# values, and says how long they take.
