"""What all pictures share: where they are drawn, their colours, and texts that fit.

matplotlib is imported when a picture is drawn, not before: it is optional.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

# Of a palette that can be told apart with any colour vision (Wong 2011, Nature Methods 8:441).
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c8c8c"
SERIES = (BLUE, ORANGE, GREEN, PURPLE, "#56b4e9", "#e69f00")


def pyplot() -> Any:
    """Import matplotlib.pyplot.

    Raises
    ------
    ImportError
        If matplotlib is not installed, with the remedy.
    """
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError(
            'pictures need matplotlib: pip install "sklboost[plot]", or pip install matplotlib'
        ) from error
    return plt


def axes_for(ax: Any, width: float, height: float) -> Any:
    """Give the axes to draw in: the user's, or those of a new figure of so many inches."""
    plt = pyplot()
    if ax is not None:
        return ax
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def short(text: str, most: int) -> str:
    """Shorten a text in the middle, since names often differ at their end."""
    text = " ".join(text.split())  # on one line
    if len(text) <= most:
        return text
    head = (most - 1) // 2
    return f"{text[: most - 1 - head]}…{text[len(text) - head :]}"


def short_names(names: Sequence[str], most: int) -> list[str]:
    """Shorten names so that those that were different stay so.

    Where the middle is what names differ in, it is their beginning and their end that are cut.
    """
    shown = [short(name, most) for name in names]
    counts = Counter(shown)
    for text in [text for text, count in counts.items() if count > 1]:
        places = [i for i, own in enumerate(shown) if own == text]
        full = [" ".join(names[i].split()) for i in places]
        letters = enumerate(zip(*full, strict=False))
        same = next((at for at, own in letters if len(set(own)) > 1), min(map(len, full)))
        start = max(6, full[0].rfind(" ", 0, same) + 1, same - most // 2)
        for i, name in zip(places, full, strict=True):
            if len(set(full)) > 1:  # else nothing would tell them apart
                shown[i] = name[:5] + "…" + _beginning(name[start:], most - 6)
    return shown


def _beginning(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def literal(text: str) -> str:
    """Give a text so that matplotlib takes its dollar signs for such, and for no formula."""
    return text.replace("$", r"\$")


def short_number(value: float, precision: int) -> str:
    """Write a number with so many digits, but no digit before the point is left out."""
    if 10**precision <= abs(value) < 1e9:
        return f"{value:,.0f}"
    return f"{value + 0.0:.{precision}g}"  # no -0
