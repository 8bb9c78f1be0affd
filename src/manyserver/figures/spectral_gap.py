"""How fast join the shortest queue forgets its start, over the spare capacity."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from manyserver.analysis.curves import select
from manyserver.figures.base import Curve, FigureKind, RegimeOptions, read
from manyserver.methods import Role

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from manyserver.analysis.supply import Supply
    from manyserver.figures.drawing.style import Look

__all__ = ["Options", "SpectralGapFigure"]

GAP = "spectral_gap"
SMALL_BETA = 2 / 9
"""Limit of the gap over beta**2, for small beta."""
POINTS = 200
BELOW = r"continuous spectrum, $\beta^2/4$"


class Options(RegimeOptions):
    """What is drawn, and how."""

    n_servers: list[int] | None = Field(default=None, min_length=1)
    """Numbers of servers that are drawn, besides the limit; all if left out."""


class SpectralGapFigure(FigureKind[Options]):
    """See :class:`~manyserver.figures.base.FigureKind`."""

    name = "spectral_gap"
    title = "How fast join the shortest queue forgets its start, over the spare capacity."
    model = "halfin_whitt"
    options_class = Options

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as spectral gaps."""
        yield study.lacks(Role.RELAXATION)

    def draw(self, cube: "xr.Dataset", options: Options) -> "Figure":
        """Draw the spectral gap, and its ratio to beta**2, over beta.

        The diffusion as a line with markers, finite systems as hollow markers, with the bottom of
        the continuous spectrum, the limit for small beta, and the rate theta that no convergence in
        total variation can exceed.

        Raises
        ------
        ValueError
            If a label is not in the cube, or there is nothing to draw.
        """
        from manyserver.figures.drawing import legends, marks, style

        servers = None if options.n_servers is None else [*map(float, options.n_servers)]
        if servers is not None and np.inf in cube["n_servers"].values:
            servers.append(np.inf)
        cube = select(cube, beta=options.betas, n_servers=servers)
        if GAP not in cube or not np.isfinite(cube[GAP].values).any():
            raise ValueError(f"{GAP}: the cube holds no value to draw")
        columns = min(marks.COLUMNS[options.width], 2)
        figure, panels = marks.grid(2 // columns, columns, options.width, 2.4)
        looks = style.size_looks([float(n) for n in cube["n_servers"].values])
        for axes, ratio in zip(panels.ravel(), (False, True), strict=True):
            _draw_panel(axes, cube, looks, ratio)
            axes.set_xlabel(style.AXIS_LABELS["beta"])
        panels.flat[0].set_ylabel(r"Spectral gap, $\gamma$")
        panels.flat[1].set_ylabel(r"$\gamma\,/\,\beta^2$")
        meanings = [
            legends.line_entry(BELOW, line=marks.LIMITS[0]),
            legends.line_entry(r"small $\beta$: $2\beta^2/9$", line=marks.LIMITS[1]),
            legends.line_entry(r"first hit of $Y_1 = 0$, $\theta$", line=marks.LIMITS[2]),
        ]
        legends.legend(
            figure,
            [legends.entry(look, line=bool(np.isinf(n))) for look, n in _named(cube, looks)],
            meanings,
            options.title,
        )
        return figure


def _named(cube: "xr.Dataset", looks: "list[Look]") -> "list[tuple[Look, float]]":
    return [(look, float(n)) for look, n in zip(looks, cube["n_servers"].values, strict=True)]


def _draw_panel(axes: "Axes", cube: "xr.Dataset", looks: "list[Look]", ratio: bool) -> None:
    from manyserver.diffusion.halfin_whitt.limit.exponent import small_exponent
    from manyserver.figures.drawing import marks

    betas = np.asarray(cube["beta"].values, dtype=float)
    fine = np.linspace(betas[0], betas[-1], POINTS)
    known: list[float] = []
    for look, n in _named(cube, looks):
        curve = read(cube, GAP, "beta", Role.RELAXATION, n).known
        curve = Curve(curve.x, curve.values / (curve.x**2 if ratio else 1.0), curve.half_widths)
        known.extend(curve.values)
        if np.isinf(n):
            marks.joined(axes, curve, look)
        else:
            marks.markers(axes, curve, look)
    theory = (fine**2 / 4, SMALL_BETA * fine**2, np.array([small_exponent(b) for b in fine]))
    for values, line in zip(theory, marks.LIMITS, strict=True):
        scaled = values / fine**2 if ratio else values
        axes.plot(fine, scaled, color=marks.GREY, linestyle=line, linewidth=0.9, zorder=1)
    if ratio:
        axes.set_yscale("log")
        axes.set_ylim(0.8 * min(known), 1.25 * max(known))
        marks.few_numbers(axes.yaxis)
    else:
        axes.set_ylim(0.0, 1.12 * max(known))
