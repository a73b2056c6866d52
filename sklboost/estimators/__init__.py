"""The scikit-learn face: parameters, validation, labels, weights.

The only room that imports scikit-learn.
"""
