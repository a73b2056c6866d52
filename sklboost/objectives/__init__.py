"""Objectives: losses, and the metrics that are computed from the same formulas."""
