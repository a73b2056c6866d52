"""From what the user has to bins: cut points, then bins, for one fit or to be kept for many.

Read ``features`` first: it is what other rooms call. Tables of any library are read by ``frames``
and become numbers by ``encoding``; ``table`` and ``sparse_table`` hold them, ``raw_values`` hands
them to kernels block by block. ``cuts`` decides on the bins, and ``binning`` fills them.
"""
