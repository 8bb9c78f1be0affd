"""Figures: cube -> paper-quality figure.

A kind of figure is a :class:`~manyserver.figures.base.FigureKind` in a module here, or an entry
point of the group ``manyserver.figures`` in any other package; :mod:`manyserver.registry` finds it.
matplotlib is imported only to draw.
"""

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from manyserver.figures.base import FigureKind
from manyserver.registry import ModelRegistry

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

__all__ = ["FigureKind", "draw", "failure", "kinds", "load", "save"]

DOTS_PER_INCH = 200

REGISTRY: ModelRegistry[FigureKind[Any]] = ModelRegistry("figure", FigureKind, __name__, key="kind")
kinds, load = REGISTRY.names, REGISTRY.get


def draw(
    kind: str, cube: "xr.Dataset", options: BaseModel | Mapping[str, object] | None = None
) -> "Figure":
    """Draw a figure.

    Parameters
    ----------
    kind : str
        One of :func:`kinds`.
    cube : xarray.Dataset
        Results of a study: the dimensions method and the axes of its model.
    options : pydantic model or mapping, optional
        Options of this kind; the defaults if left out.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If there is no such kind, an option is unknown or out of its range, or the cube holds
        nothing that this kind could draw.
    """
    from manyserver.figures.drawing import style

    chosen = load(kind)
    with style.theme():
        figure: Figure = chosen.draw(cube, chosen.checked_options(options))
        # Ticks are made when they are first drawn, in the style of that moment.
        figure.draw_without_rendering()
    return figure


def failure(reason: str) -> "Figure":
    """Return what stands for a figure that failed, with the reason on it."""
    from matplotlib.figure import Figure

    shown = "".join(letter if letter.isprintable() else " " for letter in reason)
    figure = Figure(figsize=(3.4, 1.6))
    text = textwrap.shorten(f"Not drawn: {shown}", 300)
    figure.text(
        0.5, 0.5, textwrap.fill(text, 44), ha="center", va="center", size=7, parse_math=False
    )
    return figure


def save(
    figure: "Figure", path: Path | str, provenance: Mapping[str, str] | None = None
) -> tuple[Path, Path]:
    """Write a figure as PNG (200 dpi) and PDF; the same figure gives the same bytes.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        What :func:`draw` returned.
    path : path-like
        Where to, without suffix.
    provenance : mapping, optional
        What the files say of where they come from.

    Returns
    -------
    tuple of Path
        The PNG and the PDF.
    """
    from manyserver.figures.drawing import style

    told = json.dumps(provenance) if provenance else None
    png, pdf = Path(f"{path}.png"), Path(f"{path}.pdf")
    with style.theme():
        figure.savefig(png, dpi=DOTS_PER_INCH, metadata={"Software": None, "Comment": told})
        dates = {"CreationDate": None, "Creator": None, "Producer": None}
        figure.savefig(pdf, metadata={**dates, "Keywords": told})
    return png, pdf
