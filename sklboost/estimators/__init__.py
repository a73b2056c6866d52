"""The scikit-learn face: parameters, validation, labels, weights. The only room with scikit-learn."""
