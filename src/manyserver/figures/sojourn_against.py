"""Mean sojourn time against any axis: load, number of servers, or one of the study's own."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from manyserver.analysis.axes import named, own_axes
from manyserver.analysis.curves import points, rate_dimension
from manyserver.figures.base import (
    Curve,
    FigureKind,
    FigureOptions,
    check_axis,
    chosen,
    finite_servers,
    heading,
    numeric_axes,
    read,
    shortened,
    x_label,
)
from manyserver.methods import METHOD, Role
from manyserver.variables import MeanName

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from manyserver.analysis.supply import Supply
    from manyserver.figures.drawing.style import Look

__all__ = ["Options", "SojournAgainstFigure"]

RATES = ("load", "arrival_rate")
SERVERS = "n_servers"


class Options(FigureOptions):
    """What is drawn, and how."""

    width: Literal["column", "page"] | None = None  # type: ignore[assignment]
    """One column of a paper (3.4 inches) or its whole page (7 inches); by default one column for
    one panel."""
    x: str | None = None
    """The horizontal axis: the swept one of `load` and `arrival_rate`, which is the default,
    `n_servers`, or an axis of the study's own."""
    curves: str = "policy"
    """What has a curve for each of its values: `policy`, `system`, or another such axis."""
    quantity: Literal[MeanName, "stability_limit"] = "sojourn_mean"
    """The variable on the vertical axis; a stability limit is that of the load."""
    n_servers: int | None = None
    """Number of servers of the simulations drawn; the largest if left out."""
    baseline: str | None = None
    """Label of a policy; adds panels with the ratio to it."""
    deviation: bool = False
    """Whether to add panels with the relative deviation from the limit, against `n_servers`."""
    scale: Literal["linear", "log"] = "linear"
    """Scale of the vertical axis."""
    x_scale: Literal["linear", "log"] | None = None
    """Scale of the horizontal axis; by default that of `n_servers` is logarithmic."""
    largest: float | None = Field(default=None, gt=0)
    """Where the vertical axis ends; by default all that is drawn fits."""
    largest_ratio: float | None = Field(default=None, gt=0)
    """Where the vertical axis of the ratios ends."""


@dataclass(frozen=True)
class _Drawn:
    """One curve: what the limit says, and what was simulated."""

    look: "Look"
    limit: Curve
    simulated: Curve


class SojournAgainstFigure(FigureKind[Options]):
    """See :class:`~manyserver.figures.base.FigureKind`."""

    name = "sojourn_against"
    title = "Mean sojourn time against any axis: load, `n_servers`, or one of the study's own."
    options_class = Options

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as a simulation or the mean field."""
        x = options.x or study.rate_axis
        yield (
            study.lacks(Role.SIMULATION)
            if x == SERVERS
            else study.lacks(Role.LIMIT, Role.SIMULATION)
        )
        if options.quantity == "stability_limit" and {x, options.curves} & {
            SERVERS,
            study.rate_axis,
        }:
            yield "an axis of the study's own as x for the stability limit"
        if options.curves == x:
            yield f"another axis for its curves than {x}"
        if options.deviation:
            yield "" if x == SERVERS else "x: n_servers, or deviation: false"
            lack = study.lacks(Role.LIMIT)
            yield lack and f"deviation: false, or {lack}"
        if options.deviation and options.baseline is not None:
            yield "deviation: false, or no baseline"
        if options.baseline is not None:
            drawn = options.policies
            if drawn is not None and options.baseline not in drawn:
                yield f"its baseline {options.baseline!r} among its policies"
            if options.curves != "policy":
                yield "curves: policy, or no baseline"

    def draw(self, cube: "xr.Dataset", options: Options) -> "Figure":
        """Draw the limit as lines and simulation as markers; what is no axis has panels.

        The panels below show the ratio to the baseline, or the relative deviation from the limit,
        with a line of slope -1; a deviation within its half-width is drawn as an upper bound.

        Raises
        ------
        ValueError
            If a label or an axis is not in the cube, or there is nothing to draw.
        """
        from manyserver.figures.drawing import legends, marks

        x = options.x or rate_dimension(cube)
        numbers = numeric_axes(cube)
        check_axis("x", x, numbers)
        check_axis("curves", options.curves, ("system", "policy", *numbers))
        cube = chosen(cube, options, keep=own_axes(cube))
        # What no method computes does not depend on the rate, either.
        computed = METHOD in cube[options.quantity].dims if options.quantity in cube else True
        if not computed:
            cube = cube.isel({rate_dimension(cube): 0})
        looks = _looks(cube, x, options.curves)
        several = SERVERS in (x, options.curves)
        n_servers = None if several else finite_servers(cube, options.n_servers)
        fixed = [
            axis
            for axis in ("system", "policy", rate_dimension(cube), *own_axes(cube))
            if axis in cube.dims and axis not in (x, options.curves)
        ]
        panels = [
            (here, curves)
            for here in points(cube, *fixed)
            if (curves := _curves(here, x, n_servers, looks, options))
        ]
        if not panels:
            raise ValueError(f"{options.quantity}: the cube holds no value to draw")
        base = _baseline(cube, options)
        rows = 1 + (options.deviation or base is not None)
        width = options.width or ("column" if len(panels) == 1 else "page")
        tall = math.ceil(len(panels) / marks.COLUMNS[width])
        columns = math.ceil(len(panels) / tall)
        figure, grid = marks.grid(
            rows=rows * tall,
            columns=columns,
            width=width,
            height=2.3 if rows == len(panels) == 1 else 1.9,
            sharex=True,
            height_ratios=[1.3, 1] * tall if rows > 1 else None,
        )
        # What belongs together stands below each other: shape (panel, row in it).
        stacked = grid.reshape(-1, rows, columns).swapaxes(1, 2).reshape(-1, rows)
        stacked = marks.without_spare(stacked, len(panels))
        alike = not {rate_dimension(cube), *own_axes(cube)}.intersection(fixed)
        bounds = False
        for (here, curves), column in zip(panels, stacked, strict=True):
            for curve in curves:
                _draw(column[0], curve, x)
                if options.deviation:
                    bounds |= _draw_deviation(column[1], curve)
            if base is not None:
                _draw_ratios(column[1], curves, looks[base])
            column[0].set_title(heading(here, cube, fixed))
        starts = range(0, len(stacked), columns)
        lines = [row for start in starts for row in stacked[start : start + columns].T]
        for row in lines:
            if alike or options.deviation:
                marks.share_vertical(row)
        _finish(lines[::rows], options, x)
        if all(float(value).is_integer() for value in cube[x].values if np.isfinite(value)):
            marks.whole_numbers(stacked[0, 0].xaxis)
        if rows > 1:
            _finish_second(lines[1::2], options, "" if base is None else looks[base].label)
        for axes in stacked[-columns:, -1]:
            axes.set_xlabel(x_label(cube, x))
            axes.tick_params(labelbottom=True)
        drawn = [curve for _, curves in panels for curve in curves]
        lines_of = {curve.look.label for curve in drawn if curve.limit.known.x.size}
        markers_of = {curve.look.label for curve in drawn if curve.simulated.known.x.size}
        meanings = legends.method_entries(bool(lines_of), bool(markers_of), n_servers)
        meanings = meanings if computed else []
        if options.deviation:
            meanings += [legends.slope_entry(-1), *[legends.upper_bound_entry()] * bounds]
        legends.legend(
            figure,
            [
                legends.entry(look, look.label in lines_of, look.label in markers_of)
                for look in looks
                if look.label in lines_of | markers_of
            ],
            meanings,
            options.title,
        )
        figure.align_ylabels(stacked[::columns].flat)
        return figure


def _looks(cube: "xr.Dataset", x: str, curves: str) -> "list[Look]":
    from manyserver.figures.drawing import style

    if curves == "policy":
        return style.looks(cube)
    if curves == SERVERS:
        return style.value_looks(
            [r"$N \to \infty$" if np.isinf(n) else f"$N = {n:.0f}$" for n in cube[SERVERS].values]
        )
    if curves == "system":
        return style.jobs_looks([str(label) for label in cube["system"].values])
    values = [float(value) for value in cube[curves].values]
    if curves == rate_dimension(cube):
        return style.rate_looks(values, curves)
    return style.value_looks([named(cube, curves, value) for value in values])


def _curves(
    here: "xr.Dataset", x: str, n_servers: float | None, looks: "list[Look]", options: Options
) -> list[_Drawn]:
    """Return the curves of a panel that have any value."""
    found = []
    for look, curve in zip(looks, points(here, options.curves), strict=True):
        if x == SERVERS:
            finite = curve.isel(n_servers=np.isfinite(curve[SERVERS].values))
            limit = read(curve, options.quantity, SERVERS, Role.LIMIT)
            limit = limit.at(np.isinf(limit.x))
            simulated = read(finite, options.quantity, SERVERS, Role.SIMULATION).known
        elif options.curves == SERVERS:
            at_limit = bool(np.isinf(curve[SERVERS]))
            values = read(curve, options.quantity, x, Role.LIMIT if at_limit else Role.SIMULATION)
            missing = Curve(values.x, np.full(values.x.size, np.nan), values.half_widths)
            limit, simulated = (values, missing) if at_limit else (missing, values)
        else:
            limit = read(curve, options.quantity, x, Role.LIMIT, np.inf)
            simulated = read(curve, options.quantity, x, Role.SIMULATION, n_servers or np.nan)
        if limit.known.x.size or simulated.known.x.size:
            found.append(_Drawn(look, limit, simulated))
    return found


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


def _draw(axes: "Axes", curve: _Drawn, x: str) -> None:
    from manyserver.figures.drawing import marks

    if x == SERVERS:
        for value in curve.limit.known.values:
            marks.level(axes, float(value), curve.look)
    else:
        marks.theory(axes, curve.limit, curve.look)
    marks.markers(axes, curve.simulated, curve.look)


def _draw_ratios(axes: "Axes", curves: list[_Drawn], base: "Look") -> None:
    from manyserver.figures.drawing import marks

    level = next((curve for curve in curves if curve.look.label == base.label), None)
    if level is None:
        return
    marks.level(axes, 1.0, base)
    for curve in curves:
        if curve is not level:
            marks.theory(axes, curve.limit.relative_to(level.limit), curve.look)
            marks.markers(axes, curve.simulated.relative_to(level.simulated), curve.look)


def _draw_deviation(axes: "Axes", curve: _Drawn) -> bool:
    """Draw the relative deviation; return whether some of it is drawn as bounds."""
    from manyserver.figures.drawing import marks

    known = curve.limit.known.values
    if not known.size:
        return False
    limit, finite = float(known[0]), curve.simulated
    deviation = Curve(finite.x, np.abs(finite.values / limit - 1), finite.half_widths / abs(limit))
    seen = deviation.values > deviation.half_widths
    marks.markers(axes, deviation.at(seen), curve.look)
    return marks.upper_bounds(axes, deviation.at(~seen), curve.look)


def _finish(rows: list[np.ndarray], options: Options, x: str) -> None:
    from manyserver.figures.drawing import marks, style

    log = options.x_scale == "log" or (options.x_scale is None and x == SERVERS)
    for row in rows:
        row[0].set_ylabel(style.variable_label(options.quantity))
        for axes in row:
            axes.set_yscale(options.scale)
            if options.scale == "log":
                marks.plain_numbers(axes)
            elif x != SERVERS:
                axes.set_ylim(bottom=0)
            axes.set_ylim(top=options.largest)
            if log:
                axes.set_xscale("log")
                if x != SERVERS:
                    marks.few_numbers(axes.xaxis)
                continue
            first, last = axes.get_xlim()
            if first < last / 3 and x in RATES:
                axes.set_xlim(left=0)


def _finish_second(rows: list[np.ndarray], options: Options, baseline: str) -> None:
    from manyserver.figures.drawing import marks

    for row in rows:
        if not options.deviation:
            row[0].set_ylabel(f"Ratio to\n{baseline}")
            for axes in row:
                axes.set_ylim(top=options.largest_ratio)
            continue
        row[0].set_yscale("log")
        row[0].set_ylabel("Relative deviation\nfrom the limit")
        for axes in row:
            marks.slope_guide(axes, -1)
        marks.clip_bars(row)
