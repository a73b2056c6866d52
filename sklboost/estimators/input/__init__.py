"""What users pass to estimators: features, targets, weights, seeds; checked and converted."""
