"""Mean sojourn time against arrival rate or load, all policies against each other."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from manyserver.analysis.curves import rate_dimension
from manyserver.figures.base import (
    Curve,
    FigureKind,
    FigureOptions,
    chosen,
    finite_servers,
    read,
    served,
    shortened,
)
from manyserver.methods import Role

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from manyserver.analysis.supply import Supply
    from manyserver.figures.drawing.style import Look

__all__ = ["Options", "SojournAgainstLoadFigure"]


class Options(FigureOptions):
    """What is drawn, and how."""

    width: Literal["column", "page"] = "column"
    """One column of a paper (3.4 inches) or its whole page (7 inches)."""
    quantity: Literal["sojourn_mean", "jobs_per_server", "waiting_probability"] = "sojourn_mean"
    """The variable on the vertical axis."""
    n_servers: int | None = None
    """Number of servers of the simulations drawn; the largest if left out."""
    baseline: str | None = None
    """Label of a policy; adds a panel with the ratio to it."""
    scale: Literal["linear", "log"] = "linear"
    """Scale of the vertical axis."""
    largest: float | None = Field(default=None, gt=0)
    """Where the vertical axis ends; by default all that is drawn fits."""
    largest_ratio: float | None = Field(default=None, gt=0)
    """Where the vertical axis of the ratios ends."""


class SojournAgainstLoadFigure(FigureKind[Options]):
    """See :class:`~manyserver.figures.base.FigureKind`."""

    name = "sojourn_against_load"
    title = "Mean sojourn time against arrival rate or load, all policies against each other."
    options_class = Options

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as a simulation or the mean field."""
        yield study.lacks(Role.LIMIT, Role.SIMULATION)
        drawn = options.policies
        if drawn is not None and options.baseline is not None and options.baseline not in drawn:
            yield f"its baseline {options.baseline!r} among its policies"

    def draw(self, cube: "xr.Dataset", options: Options) -> "Figure":
        """Draw mean field as lines and simulation as markers, one panel per system.

        Raises
        ------
        ValueError
            If a label is not in the cube, or there is nothing to draw.
        """
        from manyserver.figures.drawing import legends, marks, style

        cube = chosen(cube, options)
        places = list(served(cube, options.quantity))
        if not places:
            raise ValueError(f"{options.quantity}: the cube holds no value to draw")
        systems = sorted({system for system, _ in places})
        n_servers = finite_servers(cube, options.n_servers)
        looks = style.looks(cube)
        base = _baseline(cube, options)
        ratios = base is not None
        figure, panels = marks.grid(
            rows=1 + ratios,
            columns=len(systems),
            width=options.width,
            height=1.9 if ratios else 2.3,
            sharex="col",
            sharey="row",
            height_ratios=[1.3, 1] if ratios else [1],
        )
        limit = finite = False
        for system, column in zip(systems, panels.T, strict=True):
            here = cube.isel(system=system)
            curves = {
                policy: _curves(here.isel(policy=policy), options.quantity, n_servers)
                for place, policy in places
                if place == system
            }
            for policy, (line, simulated) in curves.items():
                limit |= marks.theory(column[0], line, looks[policy])
                finite |= marks.markers(column[0], simulated, looks[policy])
            if base is not None and base in curves:
                _draw_ratios(column[1], curves, base, looks)
            column[-1].set_xlabel(style.AXIS_LABELS[rate_dimension(cube)])
            if len(systems) > 1:
                column[0].set_title(str(here["system"].values))
        _finish(panels, options, "" if base is None else looks[base].label)
        used = sorted({policy for _, policy in places})
        legends.legend(
            figure,
            [legends.entry(looks[policy], limit, finite) for policy in used],
            legends.method_entries(limit, finite, n_servers),
            options.title,
        )
        figure.align_ylabels(panels[:, 0])
        return figure


def _curves(cube: "xr.Dataset", quantity: str, n_servers: float | None) -> tuple[Curve, Curve]:
    dimension = rate_dimension(cube)
    limit = read(cube, quantity, dimension, Role.LIMIT, np.inf)
    return limit, read(cube, quantity, dimension, Role.SIMULATION, n_servers or np.nan)


def _baseline(cube: "xr.Dataset", options: Options) -> int | None:
    """Position of the policy that the ratios are to."""
    if options.baseline is None:
        return None
    labels = [str(label) for label in cube["policy"].values]
    baseline = shortened(options.baseline)
    if baseline not in labels:
        raise ValueError(
            f"baseline = {options.baseline!r}: is not drawn; must be one of {', '.join(labels)}"
        )
    return labels.index(baseline)


def _draw_ratios(
    axes: "Axes", curves: dict[int, tuple[Curve, Curve]], base: int, looks: "list[Look]"
) -> None:
    from manyserver.figures.drawing import marks

    marks.level(axes, 1.0, looks[base])
    for policy, (line, simulated) in curves.items():
        if policy != base:
            marks.theory(axes, line.relative_to(curves[base][0]), looks[policy])
            marks.markers(axes, simulated.relative_to(curves[base][1]), looks[policy])


def _finish(panels: np.ndarray, options: Options, baseline: str) -> None:
    from manyserver.figures.drawing import marks, style

    panels[0, 0].set_ylabel(style.variable_label(options.quantity))
    for axes in panels[0]:
        axes.set_yscale(options.scale)
        if options.scale == "linear":
            axes.set_ylim(bottom=0)
        else:
            marks.plain_numbers(axes)
        axes.set_ylim(top=options.largest)
        first, last = axes.get_xlim()
        if first < last / 3:
            axes.set_xlim(left=0)
    if len(panels) > 1:
        panels[1, 0].set_ylim(top=options.largest_ratio)
        panels[1, 0].set_ylabel(f"Ratio to\n{baseline}")
