"""Cells of histograms on their way between machines: packed one behind another, and added up."""

from sklboost.engine.compiling import kernel


@kernel
def pack_cells(histograms, slots, strips, start, stop, part):
    """Fill `part`, int64, from the front with the numbers ``[start, stop)`` of some histograms."""
    place = 0
    for index in range(len(slots)):
        numbers = histograms[slots[index], strips[index], start:stop]
        for number in range(len(numbers)):
            part[place + number] = numbers[number]
        place += len(numbers)


@kernel
def add_cells(histograms, slots, strips, siblings, start, stop, part):
    """Add what :func:`pack_cells` has packed to histograms, and subtract it from their siblings.

    `siblings` are the slots of the latter, -1 where there is none: such a slot has the parent of
    all machines, less what this machine has built.
    """
    place = 0
    for index in range(len(slots)):
        packed = part[place : place + stop - start]
        numbers = histograms[slots[index], strips[index], start:stop]
        for number in range(len(numbers)):
            numbers[number] += packed[number]
        if siblings[index] >= 0:
            sibling = histograms[siblings[index], strips[index], start:stop]
            for number in range(len(sibling)):
                sibling[number] -= packed[number]
        place += len(packed)
