"""From what the user has to a binned matrix: cut points, then bins."""
