import numpy as np


def hold_out(X, y, weight, *, fraction, how, groups, stratified, seed):
    rng = np.random.default_rng(seed)
    m = rng.random(len(y)) < fraction
    return m
