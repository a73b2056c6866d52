"""Random-looking bits without a state: a hash of what they are for (seed, round, row).

In: small integers. Out: 32 bits as a uint64. Since nothing is drawn from a stream, the bits for a
row do not depend on which thread asks, or in what order.
"""

import numpy as np

from sklboost.engine.compiling import inlined


@inlined
def mix_bits(number):
    """Scramble a 32-bit number (a uint64 below 2^32) into 32 random-looking bits.

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
    """Mix three whole numbers into one 32-bit key; each of them, and their order, matters."""
    key = np.uint64(0)
    for number in (seed, round_, output):
        key = mix_bits(key ^ np.uint64(number & 0xFFFFFFFF)) ^ np.uint64(0x9E3779B9)
    return key
