"""Pseudo-random bits without a state: a hash of what they are for (seed, round, row).

Hashes have 32 bits, in a uint64. Since nothing is drawn from a stream, the bits for a row do not
depend on which thread asks for them, or in what order.
"""

import numpy as np

from sklboost.engine.compiling import inlined


@inlined
def mix_bits(number):
    """Return 32 pseudo-random bits for a 32-bit number, a uint64 below 2^32.

    Two rounds of xor-shift and multiply. Products stay below 2^64, so nothing wraps, compiled or
    interpreted.
    """
    low = np.uint64(0xFFFFFFFF)
    number ^= number >> np.uint64(16)
    number = (number * np.uint64(0x7FEB352D)) & low
    number ^= number >> np.uint64(15)
    number = (number * np.uint64(0x846CA68B)) & low
    return number ^ (number >> np.uint64(16))


@inlined
def hash_key(seed, round_, output):
    """Return a 32-bit key of three whole numbers; each of them, and their order, matters."""
    key = np.uint64(0)
    for number in (seed, round_, output):
        key = mix_bits(key ^ np.uint64(number & 0xFFFFFFFF)) ^ np.uint64(0x9E3779B9)
    return key
