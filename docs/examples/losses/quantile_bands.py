"""
An interval instead of a number
===============================

How many bicycles will be hired between five and six o'clock? A forecast of 340 is of little use to
the people who have to bring them there. "Between 180 and 520, nine times in ten" is useful.
Quantile regression gives such bands, and a simple correction makes them keep their promise.
"""

# %%
# Data
# ----
#
# The data are two years of Washington's hire bicycles, hour by hour. Hours of one day are alike, so
# whole days go to one of three parts: one to train on, one to correct the bands, and one to judge
# them.

import numpy as np
import pandas as pd

bike = pd.read_csv("../data/bike.csv.gz", parse_dates=["date"])
bike["weather"] = bike["weather"].astype("category")
X, y = bike.drop(columns="count"), bike["count"]
days = bike["date"].unique()
part_of_day = np.random.default_rng(0).choice(
    ["train", "correct", "test"], len(days), p=[0.6, 0.2, 0.2]
)
part = bike["date"].map(dict(zip(days, part_of_day, strict=True)))
X_train, X_correct, X_test = (X[part == name] for name in ("train", "correct", "test"))
y_train, y_correct, y_test = (y[part == name] for name in ("train", "correct", "test"))
print(part.value_counts().to_dict())

# %%
# Three quantiles in one model
# ----------------------------
#
# The quantile loss charges over- and underestimates differently, and its minimum is a quantile: 5 %
# of the counts should be below the first output, half below the second, 95 % below the third. One
# model gives all three, and they never cross.

from sklboost import XGBRegressorLite

model = XGBRegressorLite(
    objective="reg:quantileerror",
    quantile_alpha=[0.05, 0.5, 0.95],
    n_estimators=150,
    learning_rate=0.1,
    max_depth=5,
    min_child_weight=20,
)
model.fit(X_train, y_train)


def share_inside(X, y, margin=0.0):
    low, _, high = model.predict(X).T
    return np.mean((low - margin <= y) & (y <= high + margin))


print(f"training hours inside the band: {share_inside(X_train, y_train):.3f}")
print(f"test hours inside the band:     {share_inside(X_test, y_test):.3f}")

# %%
# Four days
# ---------
#
# The band is wide where the count is uncertain, by day, and narrow at night.

import matplotlib.pyplot as plt

shown = X_test["date"].isin(X_test["date"].unique()[-60:-56]).to_numpy()
low, middle, high = model.predict(X_test[shown]).T
times = X_test["date"][shown] + pd.to_timedelta(X_test["hour"][shown], unit="h")
names = times.dt.strftime("%a %d %b, %Hh")
hours = np.arange(len(names))

figure, axis = plt.subplots(figsize=(9, 3.8), layout="constrained")
axis.fill_between(hours, low, high, alpha=0.3, label="5 % to 95 %")
axis.plot(hours, middle, label="median")
axis.plot(hours, y_test[shown], ".", color="black", markersize=4, label="hired")
axis.set(ylabel="bicycles an hour", ylim=(0, 620))
axis.set_xticks(hours[::12], names.iloc[::12], rotation=30, ha="right")
axis.legend(frameon=False, loc="upper left", ncols=3)
plt.show()

# %%
# Bands that keep their promise
# -----------------------------
#
# The band holds nine tenths of the rows that it was fitted to, and fewer of others: trees have seen
# the noise of the training rows, too. Conformal prediction corrects that with rows that were kept
# apart. Measure how far each of them lies outside its band (negative if it is inside), and widen
# all bands by the value that 90 % of these distances are below (Romano, Patterson and Candes 2019).

low, _, high = model.predict(X_correct).T
outside = np.maximum(low - y_correct, y_correct - high)
margin = np.quantile(outside, 0.9, method="higher")

low, _, high = model.predict(X_test).T
width = np.mean(high - low)
for name, extra in {"as they are": 0.0, "corrected": margin}.items():
    share = share_inside(X_test, y_test, extra)
    print(f"{name:<12}mean width {width + 2 * extra:5.1f}   test hours inside {share:.3f}")

# %%
# .. rubric:: What is learnt
#
# Quantiles show where a forecast can be trusted, which a single number cannot. Their coverage has
# to be measured on rows that the model has not seen; if it falls short, a margin from rows kept
# apart corrects it, whatever the model.
#
# :doc:`Choose a loss </docs/how_to/choose_a_loss>` has the formula; ``reg:expectileerror`` is the
# smooth relative of this loss.
