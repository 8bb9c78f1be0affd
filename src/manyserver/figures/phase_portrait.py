"""The phase portrait of the fluid model, over the cost of waiting."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from manyserver.analysis.curves import select
from manyserver.figures.base import FigureKind, RegimeOptions, slices
from manyserver.methods import METHOD, Role

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from manyserver.analysis.supply import Supply

__all__ = ["Options", "PhasePortraitFigure"]

COST = "excess_cost"
CONTOURS = 9
ARROW = 0.3
"""Part of a path's length in the panel at which its arrow stands."""


class Options(RegimeOptions):
    """What is drawn, and how."""

    contours: bool = True
    """Whether to draw the contours of the solution of the Stein equation."""


class PhasePortraitFigure(FigureKind[Options]):
    """See :class:`~manyserver.figures.base.FigureKind`."""

    name = "phase_portrait"
    title = "The phase portrait of the fluid model, over the cost of waiting."
    model = "halfin_whitt"
    options_class = Options

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as the fluid model."""
        yield study.lacks(Role.PATHS)

    def draw(self, cube: "xr.Dataset", options: Options) -> "Figure":
        """Draw fluid paths with arrows, the curves Gamma, and contours of f*, one panel per beta.

        Paths reach the axis x1 = 0 if they start high enough, slide down to beta and come to rest
        at (-beta, 0), with beta idle servers. Those that start above a curve Gamma reach the axis
        above its level.

        Raises
        ------
        ValueError
            If a label is not in the cube, or there is nothing to draw.
        """
        from manyserver.figures.drawing import legends, marks, style

        cube = select(cube, beta=options.betas)
        parts = slices(cube, COST, "beta", "n_servers", METHOD)
        figure, panels = marks.panels(
            len(parts),
            options.width,
            height=3.4 if len(parts) == 1 else 2.4,
            x_label=r"$X_1$: minus idle servers$/\sqrt{n}$",
            y_label=r"$X_2$: waiting customers$/\sqrt{n}$",
        )
        looks = style.level_looks([float(k) for k in parts[0]["curve_level"].values])
        for part, axes in zip(parts, panels, strict=True):
            _draw_panel(axes, part, options, looks)
            if len(parts) > 1:
                axes.set_title(rf"$\beta = {float(part['beta']):g}$")
        beta = float(parts[0]["beta"])
        curves = (
            looks
            if len(parts) == 1
            else style.level_looks(
                [float(k) / beta for k in parts[0]["curve_level"].values], r"\beta"
            )
        )
        meanings = [legends.line_entry("fluid path")]
        if options.contours:
            meanings.append(legends.fill_entry("$f^*$ (darker is larger)"))
        legends.legend(
            figure, [legends.entry(look, marker=False) for look in curves], meanings, options.title
        )
        return figure


def _draw_panel(axes: "Axes", part: "xr.Dataset", options: Options, looks: list) -> None:
    from manyserver.figures.drawing import marks

    y1, y2 = part["y1_grid"].values, part["y2_grid"].values
    cost = part[COST].transpose("x1", "x2").values
    if options.contours:
        top = float(cost.max())
        # Even steps of the root, as the cost grows like a square.
        levels = top * np.linspace(0.0, 1.0, CONTOURS + 1) ** 2
        axes.contourf(y1, y2, cost.T, levels=levels, cmap=marks.PALE, zorder=0)
        drawn = axes.contour(
            y1, y2, cost.T, levels=levels[1:-1:2], colors="0.6", linewidths=0.5, zorder=1
        )
        axes.clabel(drawn, fmt="%.2g", fontsize=5.5, inline_spacing=2)
    for path in range(part.sizes["path"]):
        v1, v2 = (part[f"fluid_y{i}"].isel(path=path).values for i in (1, 2))
        axes.plot(v1, v2, color=marks.GREY, linewidth=0.8, zorder=2)
        _arrow(axes, v1, v2)
    for curve, look in enumerate(looks):
        heights = part["gamma_curve"].isel(curve=curve).values
        axes.plot(y1, heights, color=look.colour, linestyle=look.line, linewidth=1.6, zorder=3)
    beta = float(part["beta"])
    axes.plot(0.0, beta, "o", color="0.1", markersize=3.5, zorder=4, clip_on=False)
    axes.plot(-beta, 0.0, "o", color="0.1", markersize=3.5, zorder=4, clip_on=False)
    for text, place, shift, side in (
        (r"$(0, \beta)$", (0.0, beta), (-5, 4), "right"),
        (r"$(-\beta, 0)$", (-beta, 0.0), (-3, 5), "right"),
    ):
        axes.annotate(
            text,
            place,
            xytext=shift,
            textcoords="offset points",
            horizontalalignment=side,
            fontsize="small",
            bbox={"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"},
            zorder=5,
        )
    axes.axvline(0.0, color="0.1", linewidth=0.8, zorder=2)
    axes.set(xlim=(y1[0], 0.02 * -y1[0]), ylim=(0.0, y2[-1]))


def _arrow(axes: "Axes", v1: np.ndarray, v2: np.ndarray) -> None:
    from manyserver.figures.drawing import marks

    length = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(v1), np.diff(v2)))])
    at = int(np.searchsorted(length, ARROW * length[-1]))
    at = min(max(at, 1), v1.size - 2)
    axes.annotate(
        "",
        (v1[at + 1], v2[at + 1]),
        xytext=(v1[at], v2[at]),
        arrowprops={"arrowstyle": "-|>", "color": marks.GREY, "lw": 0.0, "mutation_scale": 8},
        zorder=2,
    )
