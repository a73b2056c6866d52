"""The losses: of each its formulas, link, start values and the targets it is defined for."""
