"""Names beside points, none over another one."""

from collections.abc import Sequence

import numpy as np
import scipy
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from manyserver.figures.drawing.style import Look

__all__ = ["SIZE", "beside", "spread"]

SIZE, LINE = 6.0, 7.5
"""Size and distance of lines of text, in points."""
GAP = 12.0
"""From a point to its name, in points."""
COLUMN = 0.08
"""Names of points this near, over the width of the panel, share a column."""


def beside(axes: Axes, named: Sequence[tuple[float, float, str, Look]], height: float) -> None:
    """Write names to the right of their points, with lines to them.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        With the limits that it keeps.
    named : sequence of tuple
        Position, text and look of every point.
    height : float
        Of the panel in points, about: sizes are settled when the figure is drawn.
    """
    columns: dict[int, list[tuple[float, tuple[float, float, str, Look]]]] = {}
    for one in named:
        along, above = axes.transAxes.inverted().transform(axes.transData.transform(one[:2]))
        columns.setdefault(round(along / COLUMN), []).append((above * height, one))
    for those in columns.values():
        those.sort(key=lambda one: one[0])
        heights = spread(np.array([above for above, _ in those]), LINE)
        for (above, (x, y, text, look)), at in zip(those, heights, strict=True):
            axes.annotate(
                text,
                (x, y),
                xytext=(GAP, at - above),
                textcoords="offset points",
                fontsize=SIZE,
                color="0.15",
                path_effects=[withStroke(linewidth=2, foreground="white")],
                va="center",
                arrowprops={
                    "arrowstyle": "-",
                    "color": look.colour,
                    "linewidth": 0.5,
                    "shrinkA": 0,
                    "shrinkB": 2,
                },
            )


def spread(wanted: np.ndarray, gap: float) -> np.ndarray:
    """Move places apart to at least `gap`, those of a crowd about its middle.

    Parameters
    ----------
    wanted : numpy.ndarray, shape (place,)
        Sorted.
    gap : float

    Examples
    --------
    >>> spread(np.array([0.0, 10.0, 10.0, 11.0]), 2.0).round(2).tolist()
    [0.0, 8.33, 10.33, 12.33]
    """
    # Imported here as few figures need it.

    steps = gap * np.arange(wanted.size)
    # Apart by the gap means that what is left without the steps does not decrease.
    return np.asarray(steps + scipy.optimize.isotonic_regression(wanted - steps).x)
