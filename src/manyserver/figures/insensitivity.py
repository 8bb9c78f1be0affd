"""Mean and variance of the sojourn time by the law of the job sizes, against load."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from manyserver.analysis.curves import each_jobs, points, rate_dimension, select
from manyserver.figures.base import (
    Curve,
    FigureKind,
    FigureOptions,
    finite_servers,
    read,
    served,
    with_short_labels,
)
from manyserver.fits.insensitivity import expected_deviation
from manyserver.methods import Role

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from manyserver.analysis.supply import Supply
    from manyserver.figures.drawing.style import Look

__all__ = ["InsensitivityFigure", "Options"]

MEAN, VARIANCE = "sojourn_mean", "sojourn_variance"
LABELS = {MEAN: "Deviation of $W_N$\nfrom the limit (%)", VARIANCE: "Variance of\nsojourn times"}
SPACING = 0.018
"""Between the markers of different laws at one load, as a part of the axis."""


class Options(FigureOptions):
    """What is drawn, and how."""

    n_servers: int | None = None
    """Number of servers of the simulations drawn; the largest if left out."""


@dataclass
class _Used:
    """Which kinds of marks were drawn."""

    theory: set[str] = field(default_factory=set)
    """Labels of looks whose variance is known in the limit."""
    expansion: bool = False
    unreliable: bool = False


class InsensitivityFigure(FigureKind[Options]):
    """See :class:`~manyserver.figures.base.FigureKind`."""

    name = "insensitivity"
    title = "Mean and variance of the sojourn time by the law of the job sizes, against load."
    options_class = Options

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as job sizes."""
        yield study.lacks_jobs()
        yield study.lacks(Role.SIMULATION)
        yield study.lacks(Role.LIMIT)

    def draw(self, cube: "xr.Dataset", options: Options) -> "Figure":
        """Draw one column per system and policy: deviations of means above, variances below.

        Markers are simulations, hollow where the half-width is not reliable, as for sizes of
        infinite variance, whose sojourn times have no variance either. The dashed line is the term
        of order 1/N for exponential sizes; lines of variances are those of the limit, where they
        are known.

        Raises
        ------
        ValueError
            If a label is not in the cube, or there is nothing to draw.
        """
        from manyserver.figures.drawing import legends, marks, style

        rates = {rate_dimension(cube): options.rates}
        cube = select(cube, system=options.systems, policy=options.policies, **rates)
        n_servers = finite_servers(cube, options.n_servers)
        cube = with_short_labels(select(cube, jobs=options.jobs))
        parts = [_with_label(part) for part in each_jobs(cube)]
        places = sorted({place for part in parts for place in served(part, MEAN)})
        if n_servers is None or not places:
            raise ValueError(f"{MEAN}: the cube holds no value at a finite n_servers")
        looks = style.jobs_looks([str(part["jobs"].values) for part in parts])
        columns = min(len(places), 4 if options.width == "page" else 1)
        groups = [places[start : start + columns] for start in range(0, len(places), columns)]
        figure, panels = marks.grid(2 * len(groups), columns, options.width, 1.65, sharex=True)
        used = _Used()
        for group, upper, lower in zip(groups, panels[::2], panels[1::2], strict=True):
            rows = [marks.without_spare(row, len(group)) for row in (upper, lower)]
            for row in rows:
                marks.share_vertical(row)
            for (system, policy), above, below in zip(group, *rows, strict=True):
                here = [part.isel(system=system, policy=policy) for part in parts]
                _draw_means(above, here, looks, n_servers, used)
                _draw_variances(below, here, looks, n_servers, used)
                above.set_title(_title(cube, system, policy))
            rows[0][0].set_ylabel(LABELS[MEAN])
            rows[1][0].set_ylabel(LABELS[VARIANCE])
            rows[1][0].set_yscale("log")
        for axes in figure.axes:
            axes.tick_params(labelbottom=True)
        figure.supxlabel(style.AXIS_LABELS[rate_dimension(cube)], fontsize="medium")
        legends.legend(
            figure,
            [legends.entry(look, line=look.label in used.theory) for look in looks],
            _meanings(used, n_servers),
            options.title,
        )
        figure.align_ylabels()
        return figure


def _with_label(part: "xr.Dataset") -> "xr.Dataset":
    return part if "jobs" in part.coords else part.assign_coords(jobs="exponential")


def _meanings(used: _Used, n_servers: float) -> list:
    from manyserver.figures.drawing import legends, marks

    found = legends.method_entries(bool(used.theory), True, n_servers)
    if used.expansion:
        found.append(legends.line_entry("order $1/N$, exponential sizes", line=marks.GUIDE))
    if used.unreliable:
        found.append(legends.hollow_entry("half-width not reliable"))
    return found


def _draw_means(
    axes: "Axes",
    parts: "list[xr.Dataset]",
    looks: "list[Look]",
    n_servers: float,
    used: _Used,
) -> None:
    from manyserver.figures.drawing import marks

    dimension = rate_dimension(parts[0])
    axes.axhline(0.0, color=marks.GREY, linewidth=0.6, zorder=1)
    for place, (part, look) in enumerate(zip(parts, looks, strict=True)):
        limit = read(part, MEAN, dimension, Role.LIMIT, np.inf)
        curve = read(part, MEAN, dimension, Role.SIMULATION, n_servers)
        relative = Curve(
            _beside(curve.x, place, len(parts)),
            100 * (curve.values / limit.values - 1),
            100 * curve.half_widths / limit.values,
        )
        _draw_markers(axes, relative, _reliable(part, n_servers), look, used)
        if place == 0:
            # It is that of exponential sizes, whatever the sizes here.
            expected = [
                100 * expected_deviation(point, value)
                for point, value in zip(_at(part, n_servers), limit.values, strict=True)
            ]
            line = Curve(curve.x, np.array(expected), np.zeros(curve.x.size)).known
            axes.plot(line.x, line.values, color=marks.GREY, linestyle=marks.GUIDE, linewidth=0.9)
            used.expansion |= bool(line.x.size)


def _draw_variances(
    axes: "Axes",
    parts: "list[xr.Dataset]",
    looks: "list[Look]",
    n_servers: float,
    used: _Used,
) -> None:
    from manyserver.figures.drawing import marks

    dimension = rate_dimension(parts[0])
    for part, look in zip(parts, looks, strict=True):
        if "size_scv" in part and np.isinf(part["size_scv"]):
            continue
        line = read(part, VARIANCE, dimension, Role.LIMIT, np.inf)
        if marks.theory(axes, line, look):
            used.theory.add(look.label)
        curve = read(part, VARIANCE, dimension, Role.SIMULATION, n_servers)
        _draw_markers(axes, curve, _reliable(part, n_servers), look, used)


def _draw_markers(
    axes: "Axes", curve: Curve, reliable: np.ndarray, look: "Look", used: _Used
) -> None:
    from manyserver.figures.drawing import marks

    marks.markers(axes, curve.at(reliable), look)
    used.unreliable |= marks.markers(axes, curve.at(~reliable), replace(look, hollow=True))


def _beside(x: np.ndarray, place: int, count: int) -> np.ndarray:
    """Move markers apart that would cover each other."""
    width = float(np.ptp(x)) or 1.0
    return x + SPACING * width * (place - (count - 1) / 2)


def _reliable(part: "xr.Dataset", n_servers: float) -> np.ndarray:
    curve = read(part, "interval_reliable", rate_dimension(part), Role.SIMULATION, n_servers)
    return np.asarray(curve.values != 0)


def _at(part: "xr.Dataset", n_servers: float) -> "Iterable[xr.Dataset]":
    return points(part.sel(n_servers=n_servers), rate_dimension(part))


def _title(cube: "xr.Dataset", system: int, policy: int) -> str:
    from manyserver.figures.drawing import style

    name = style.looks(cube)[policy].label
    return f"{name}\n{cube['system'].values[system]}" if cube.sizes["system"] > 1 else name
