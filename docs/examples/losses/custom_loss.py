"""
A loss of your own
==================

If there is a bicycle too few, a customer is lost; a bicycle too many stands idle. If the first
costs three times as much as the second, the mean is the wrong forecast. This example writes the
cost as a loss, checks its derivatives, compiles it, and compares what the forecasts cost.
"""

# %%
# Data
# ----

import numpy as np
import pandas as pd

bike = pd.read_csv("../data/bike.csv.gz", parse_dates=["date"])
bike["weather"] = bike["weather"].astype("category")
X, y = bike.drop(columns="count"), bike["count"].to_numpy(dtype=float)
test = bike["date"].dt.day > 20
X_train, y_train, X_test, y_test = X[~test], y[~test], X[test], y[test]

# %%
# The cost, and its derivatives
# -----------------------------
#
# The loss is a squared error that counts three times if the forecast is too low. Boosting needs its
# first and second derivative with respect to the prediction of each row.

from sklboost import check_loss

TOO_FEW, TOO_MANY = 3.0, 1.0


def cost(y_true, y_pred):
    return np.where(y_pred < y_true, TOO_FEW, TOO_MANY) * (y_pred - y_true) ** 2 / 2


def lopsided(y_true, y_pred):
    factor = np.where(y_pred < y_true, TOO_FEW, TOO_MANY)
    return factor * (y_pred - y_true), factor


check_loss(lopsided, y_train, value=cost)

# %%
# ``check_loss`` compares them with finite differences and prints nothing if they are right. If
# there is a mistake, it names the row with the largest error:


def mistaken(y_true, y_pred):
    gradient, hessian = lopsided(y_true, y_pred)
    return -gradient, hessian


try:
    check_loss(mistaken, y_train[:5], value=cost)
except AssertionError as error:
    print(error)

# %%
# Train with it
# -------------
#
# The function is the ``objective``. With a function, training starts from 0 unless you give a start
# value, as here.

from sklboost import XGBRegressorLite

settings = dict(n_estimators=150, learning_rate=0.1, max_depth=5, base_score=y_train.mean())
models = {
    "mean": XGBRegressorLite(**settings),
    "lopsided": XGBRegressorLite(**settings, objective=lopsided),
}
for name, model in models.items():
    prediction = model.fit(X_train, y_train).predict(X_test)
    print(
        f"{name:<9}mean cost {cost(y_test, prediction).mean():6.0f}   "
        f"too low {np.mean(prediction < y_test):.2f} of the hours"
    )

# %%
# The forecasts of a week
# -----------------------

import matplotlib.pyplot as plt

hours = X_test["date"] + pd.to_timedelta(X_test["hour"], unit="h")
days = X_test["date"].between("2012-09-24", "2012-09-27").to_numpy()
figure, axis = plt.subplots(figsize=(9, 3.8), layout="constrained")
axis.plot(hours[days], y_test[days], ".", color="black", markersize=4, label="hired")
for name, model in models.items():
    axis.plot(hours[days], model.predict(X_test)[days], label=name)
axis.set(ylabel="bicycles an hour", ylim=(0, None))
axis.legend(frameon=False, ncols=3, loc="upper left")
axis.xaxis.set_major_formatter(plt.matplotlib.dates.DateFormatter("%a %Hh"))
plt.show()

# %%
# Compiled
# --------
#
# The function above is called by Python once a round. Written for a single row and compiled with
# numba it runs inside the training, on all threads. The model is the same, bit for bit.

import numba


@numba.njit
def lopsided_row(y_true, y_pred):
    factor = TOO_FEW if y_pred < y_true else TOO_MANY
    return factor * (y_pred - y_true), factor


compiled = XGBRegressorLite(**settings, objective=lopsided_row).fit(X_train, y_train)
print((compiled.predict(X_test) == models["lopsided"].predict(X_test)).all())

# %%
# .. rubric:: What is learnt
#
# A model minimises the loss that it is given. Writing the real cost takes two lines, and the best
# forecast for it differs from the mean.
#
# :doc:`Write your own loss </docs/how_to/write_your_own_loss>` explains weights, classes and links.
# For a cost that is proportional to the error, not to its square, ``reg:quantileerror`` with
# ``quantile_alpha=0.75`` is this trade of three to one.
