"""Parts of all displays: the base class, checks of arguments, colours, texts that fit.

matplotlib is optional, so it is imported when a picture is drawn, not before.
"""

import inspect
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, Self

from sklboost.docstrings import ATTRIBUTES, Function, completed, divided, entries_of, entry
from sklboost.estimators.parameters.rules import integer

# Of a palette that can be told apart with any colour vision (Wong 2011, Nature Methods 8:441).
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c8c8c"
SERIES = (BLUE, ORANGE, GREEN, PURPLE, "#56b4e9", "#e69f00")
DARK = "#303030"

Arguments = ParamSpec("Arguments")
_RETURNED = r"(Returns\n-------\n)\w+"
_RAISES, _EXAMPLES = "Raises\n------\n", "Examples\n--------\n"


class Display(ABC):
    """A picture that can be drawn again: base class of the displays.

    The docstrings of a display and of what makes it have what is common to all of them from here.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure
    """

    ax_: Any
    figure_: Any

    def __init_subclass__(cls) -> None:
        if cls.__doc__ is None or not cls.__module__.startswith("sklboost."):
            return  # as it is with python -OO, or a user's own
        text = inspect.cleandoc(cls.__doc__) + "\n"
        known = {"ax": entry("ax", "matplotlib.axes.Axes, optional", "None: a new figure.")}
        known |= entries_of(divided(text)[1])
        common = inspect.cleandoc(Display.__doc__ or "").partition(ATTRIBUTES)[2]
        text = text.replace(ATTRIBUTES, f"{ATTRIBUTES}{common}\n")
        words = re.findall("[A-Z][a-z]+", cls.__name__.removesuffix("Display"))
        twin = f"plot_{'_'.join(words).lower()}"
        twins = f"See Also\n--------\n{twin} : A function that draws the same and returns the axes."
        cls.__doc__ = text.replace(_EXAMPLES, f"{twins}\n\n{_EXAMPLES}")
        for method in vars(cls).values():
            if isinstance(method, classmethod):
                names = inspect.signature(method.__func__).parameters
                text = completed(method.__doc__ or "", names, known)
                returned = f"Returns\n-------\n{cls.__name__}\n\n"
                text = text.replace(_RAISES, returned + _RAISES)
                text += "ImportError\n    If matplotlib is not installed.\n"
                method.__func__.__doc__ = text
                known |= entries_of(divided(text)[1])

    def plot(self, ax: Any = None) -> Self:
        """Draw the picture, once more if it was drawn before.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            None: a new figure.

        Returns
        -------
        Display
            The display itself.
        """
        pyplot()
        self.ax_ = self._new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure
        self._draw(self.ax_)
        return self

    def _new_axes(self) -> Any:
        return pyplot().subplots(figsize=self._size(), layout="constrained")[1]

    def _size(self) -> tuple[float, float]:
        """Width and height of a new figure, in inches."""
        return 7.0, 4.3

    @abstractmethod
    def _draw(self, ax: Any) -> None:
        """Draw in these axes and set the attributes of what was drawn."""


def draws_like(method: Callable[..., Any]) -> Callable[[Function], Function]:
    """Decorate a function that draws what a method draws and returns the axes.

    Its docstring gets the method's parameters and errors.
    """

    def decorate(function: Function) -> Function:
        if function.__doc__ is not None:  # as it is with python -OO
            names = inspect.signature(function).parameters
            of_method = re.sub(_RETURNED, r"\1matplotlib.axes.Axes", method.__doc__ or "")
            function.__doc__ = completed(function.__doc__, names, {}, of_method)
        return function

    return decorate


def function_of(name: str, method: Callable[Arguments, Display]) -> Callable[Arguments, Any]:
    """Return the function of this name that draws what a method draws and returns the axes."""

    def plot(*arguments: Arguments.args, **named: Arguments.kwargs) -> Any:
        return method(*arguments, **named).ax_

    plot.__name__ = plot.__qualname__ = name
    plot.__module__ = method.__module__
    signature = inspect.signature(method).replace(return_annotation=Any)
    plot.__signature__ = signature  # type: ignore[attr-defined]
    plot.__doc__ = (method.__doc__ or "").partition("\n")[0] or None
    return draws_like(method)(plot)


def pyplot() -> Any:
    """Import matplotlib.pyplot; ImportError with the remedy if matplotlib is not installed."""
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError(
            'pictures need matplotlib: pip install "sklboost[plot]", or pip install matplotlib'
        ) from error
    return plt


def check_number(name: str, value: Any, stop: int, words: str) -> None:
    """Raise ValueError unless a value is an integer from 0 to `stop`, excluded."""
    if not integer(0, stop - 1).holds(value):
        valid = "0" if stop == 1 else f"0 to {stop - 1}"
        raise ValueError(f"{name}={value!r}: {words} {valid}")


def hide_frame(ax: Any) -> None:
    """Leave only the lines of the axes at the left and at the bottom."""
    ax.spines[["top", "right"]].set_visible(False)


def short(text: str, most: int) -> str:
    """Shorten a text in the middle, since names often differ at their end."""
    text = " ".join(text.split())  # on one line
    if len(text) <= most:
        return text
    head = (most - 1) // 2
    return f"{text[: most - 1 - head]}…{text[len(text) - head :]}"


def short_names(names: Sequence[str], most: int) -> list[str]:
    """Shorten names so that those that were different stay so.

    Names that differ in their middle are cut at their beginning and their end.
    """
    shown = [short(name, most) for name in names]
    counts = Counter(shown)
    for text in [text for text, count in counts.items() if count > 1]:
        places = [place for place, name in enumerate(shown) if name == text]
        full = [" ".join(names[place].split()) for place in places]
        if len(set(full)) == 1:
            continue  # nothing tells them apart
        letters = enumerate(zip(*full, strict=False))
        same = next((at for at, some in letters if len(set(some)) > 1), min(map(len, full)))
        start = max(6, full[0].rfind(" ", 0, same) + 1, same - most // 2)
        for place, name in zip(places, full, strict=True):
            rest = name[start:]
            if len(rest) > most - 6:
                rest = rest[: most - 7] + "…"
            shown[place] = f"{name[:5]}…{rest}"
    return shown


def literal(text: str) -> str:
    """Return a text in which matplotlib shows dollar signs instead of reading formulas."""
    return text.replace("$", r"\$")


def short_number(value: float, precision: int) -> str:
    """Write a number with `precision` digits, and with all that are before the point."""
    if 10**precision <= abs(value) < 1e9:
        return f"{value:,.0f}"
    return f"{value + 0.0:.{precision}g}"  # no -0
