"""Figures: cube -> paper-quality figure.

A kind of figure is a module here with a pydantic model ``Options`` and two functions:
``draw(cube, options)``, and ``needs(study, options)``, which yields what a study lacks that it
needs (:mod:`manyserver.analysis.supply`). It is found by its file name. matplotlib is imported only
to draw.
"""

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from manyserver import discovery

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

__all__ = ["draw", "failure", "kinds", "load", "options", "save"]

SUPPORT = ("base", "labels", "legends", "marks", "style")
DOTS_PER_INCH = 200


def kinds(model: str | None = None) -> tuple[str, ...]:
    """Return the names of all kinds of figures, or of those for a model, sorted.

    Examples
    --------
    >>> kinds("dispatching")
    ('convergence', 'decay', 'insensitivity', 'percentiles', 'policy_map', 'propagation_of_chaos',
     'queue_tails', 'sojourn_against_choices', 'sojourn_against_load', 'sojourn_against_messages',
     'sojourn_against_servers', 'targets')
    """
    return discovery.modules(__name__, SUPPORT, model=model)


def options(kind: str, model: str | None = None) -> type[BaseModel]:
    """Return the model of a kind's options.

    Raises
    ------
    ValueError
        If there is no such kind, or `model` is given and it is for another one.
    """
    return load(kind, model).Options  # type: ignore[no-any-return]


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
    from manyserver.figures import style

    module = load(kind)
    if not isinstance(options, BaseModel):
        options = module.Options(**(options or {}))
    with style.theme():
        figure: Figure = module.draw(cube, options)
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
    from manyserver.figures import style

    told = json.dumps(provenance) if provenance else None
    png, pdf = Path(f"{path}.png"), Path(f"{path}.pdf")
    with style.theme():
        figure.savefig(png, dpi=DOTS_PER_INCH, metadata={"Software": None, "Comment": told})
        dates = {"CreationDate": None, "Creator": None, "Producer": None}
        figure.savefig(pdf, metadata={**dates, "Keywords": told})
    return png, pdf


def load(kind: str, model: str | None = None) -> Any:
    """Return the module of a kind.

    Raises
    ------
    ValueError
        If there is no such kind, or `model` is given and it is for another one.
    """
    module = discovery.load(__name__, kind, "figure", SUPPORT, model)
    module.options_class = module.Options  # type: ignore[attr-defined]
    module.name, module.title = kind, str(module.__doc__).split("\n\n")[0]  # type: ignore[attr-defined]
    return module
