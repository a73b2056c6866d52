"""Weighted quantiles by selection: without sorting, and without memory of its own.

Source: Hoare (1961), "Algorithm 65: Find". The values are divided by one of them, and the part that
has the quantile in the same way again.
"""

from sklboost.engine.compiling import inlined, kernel

# Of one addition of weights.
_PRECISION = 2.0**-52


@kernel
def select_quantile(values, weights, wanted):
    """Return the smallest value up to which the weights come to more than `wanted`.

    Where they come to exactly that at some value, but for rounding, it is the mean of this value
    and the next. So the quantile of alpha 1/2 is the median, and weight 2 is the value twice (as
    NumPy's method "averaged_inverted_cdf"). Both arrays are put in another order.

    Parameters
    ----------
    values, weights : ndarray of float64, shape (n_values,)
        At least one; weights are positive.
    wanted : float
        More than 0 and less than the sum of weights.
    """
    start, stop = 0, len(values)
    below = 0.0  # weight of all values before `start`
    rounding = _PRECISION * len(values) * wanted
    while True:
        pivot = middle_of_three(values[start], values[(start + stop) // 2], values[stop - 1])
        first_equal, first_above = divide_values(values, weights, start, stop, pivot)
        smaller = below + total_of(weights, start, first_equal)
        if wanted < smaller - rounding and first_equal > start:
            stop = first_equal
            continue
        up_to_pivot = smaller + total_of(weights, first_equal, first_above)
        if wanted > up_to_pivot + rounding and first_above < stop:
            start, below = first_above, up_to_pivot
            continue
        if abs(wanted - smaller) <= rounding:
            return 0.5 * pivot + 0.5 * nearest(values, pivot, -1.0)
        if abs(wanted - up_to_pivot) <= rounding:
            return 0.5 * pivot + 0.5 * nearest(values, pivot, 1.0)
        return pivot


@inlined
def middle_of_three(first, second, third):
    """Return the one that is neither the smallest nor the largest."""
    return max(min(first, second), min(max(first, second), third))


@kernel
def divide_values(values, weights, start, stop, pivot):
    """Move values below `pivot` to the front, those above to the end; return the bounds between.

    Weights move with their values. Source: Dijkstra's Dutch national flag.
    """
    first_equal, position, first_above = start, start, stop
    while position < first_above:
        value = values[position]
        if value < pivot:
            swap(values, position, first_equal)
            swap(weights, position, first_equal)
            first_equal += 1
            position += 1
        elif value > pivot:
            first_above -= 1
            swap(values, position, first_above)
            swap(weights, position, first_above)
        else:
            position += 1
    return first_equal, first_above


@inlined
def swap(values, first, second):
    """Exchange two elements."""
    values[first], values[second] = values[second], values[first]


@kernel
def nearest(values, pivot, direction):
    """Return the value next to `pivot`, above (direction 1) or below (-1); `pivot` if none is."""
    best = pivot
    for value in values:
        if direction * (value - pivot) > 0.0 and (
            best == pivot or direction * (best - value) > 0.0
        ):
            best = value
    return best


@kernel
def total_of(weights, start, stop):
    """Return the sum of the weights ``[start, stop)``, in their order."""
    total = 0.0
    for position in range(start, stop):
        total += weights[position]
    return total
