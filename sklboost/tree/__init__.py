"""The shared histogram tree builder: from binned data and gradients to one tree."""
