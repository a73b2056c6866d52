"""From what the user has to bins: cut points, then bins, for one fit or to be kept for many."""
