"""What users pass: features, targets and weights, checked and converted."""
