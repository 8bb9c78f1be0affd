"""What all kinds of figures share: their options, and how they read a cube."""

import re
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, Field

from manyserver.analysis.axes import at_values, named, own_axes, side_by_side, spread_out, title
from manyserver.analysis.curves import each_jobs, method_of, points, rate_dimension, select
from manyserver.analysis.kinds import Kind
from manyserver.methods import METHOD, Role
from manyserver.study.config.axes import Values
from manyserver.study.config.base import Strict

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

__all__ = [
    "Curve",
    "DrawingOptions",
    "FigureKind",
    "FigureOptions",
    "RegimeOptions",
    "check_axis",
    "chosen",
    "finite_servers",
    "heading",
    "numeric_axes",
    "read",
    "served",
    "shortened",
    "slices",
    "with_short_labels",
    "x_label",
]


LONGEST_LABEL = 40
"""Letters of a label in a figure."""


Options = TypeVar("Options", bound=BaseModel)


class FigureKind(Kind[Options]):
    """A kind of figure: cube -> figure."""

    @abstractmethod
    def draw(self, cube: "xr.Dataset", options: Options) -> "Figure":
        """Draw it; what draws, and matplotlib, is imported here alone.

        Raises
        ------
        ValueError
            If the cube holds nothing that this kind could draw.
        """


class DrawingOptions(Strict):
    """Options that every kind of figure has."""

    title: str = ""
    """A line above the figure; none by default, papers use captions."""
    width: Literal["column", "page"] = "page"
    """One column of a paper (3.4 inches) or its whole page (7 inches)."""


class RegimeOptions(DrawingOptions):
    """Options that every kind of figure of the Halfin-Whitt regime has."""

    betas: list[float] | None = Field(default=None, min_length=1)
    """Values of beta that are drawn; all if left out."""


class FigureOptions(DrawingOptions):
    """Options that every kind of figure of dispatching policies has."""

    systems: list[str] | None = Field(default=None, min_length=1)
    """Labels of the systems drawn; all if left out."""
    policies: list[str] | None = Field(default=None, min_length=1)
    """Labels of the policies drawn, in this order; all if left out."""
    jobs: list[str] | None = Field(default=None, min_length=1)
    """Labels of the job sizes and disciplines drawn; all if left out."""
    at: dict[str, Values] = Field(default={})
    """Values of axes of the study's own that are drawn, by the name of the axis; all if left
    out."""
    rates: list[float] | None = Field(default=None, min_length=1)
    """Values of the swept axis, arrival rates or loads, that are drawn; all if left out."""


@dataclass(frozen=True)
class Curve:
    """Values along one dimension, with 95 % half-widths (zero where a method has none)."""

    x: np.ndarray
    values: np.ndarray
    half_widths: np.ndarray

    @property
    def known(self) -> "Curve":
        """The same without missing values."""
        return self.at(np.isfinite(self.values))

    def at(self, places: np.ndarray) -> "Curve":
        """Keep some places, given as a mask."""
        return Curve(self.x[places], self.values[places], self.half_widths[places])

    def relative_to(self, base: "Curve") -> "Curve":
        """Divide by an independent curve; relative half-widths add in quadrature.

        Where `base` has no value, the result is missing.
        """
        there = np.isin(base.x, self.x)
        values = np.full(self.x.size, np.nan)
        half_widths = np.full(self.x.size, np.nan)
        mine = np.isin(self.x, base.x)
        values[mine], half_widths[mine] = base.values[there], base.half_widths[there]
        ratio = self.values / values
        relative = np.hypot(self.half_widths / self.values, half_widths / values)
        return Curve(self.x, ratio, ratio * relative)


def chosen(cube: "xr.Dataset", options: FigureOptions, keep: tuple[str, ...] = ()) -> "xr.Dataset":
    """Return the part of a cube that the options ask for.

    A system with each of the job sizes and disciplines is a system of its own in the result, and so
    is one, or a policy, at each value of the study's own axes, but for those to keep.

    Raises
    ------
    ValueError
        If a label is not in the cube.
    """
    rates = {rate_dimension(cube): options.rates}
    cube = select(cube, system=options.systems, policy=options.policies, **rates)
    cube = at_values(cube, options.at)
    if "jobs" in cube.dims or options.jobs is not None:
        parts = each_jobs(cube, options.jobs)
        cube = side_by_side(parts, "jobs", [str(part["jobs"].values) for part in parts])
    return with_short_labels(spread_out(cube, keep))


def with_short_labels(cube: "xr.Dataset") -> "xr.Dataset":
    """Cut labels of systems, policies and jobs that no figure has room for."""
    found = {}
    for axis in ("system", "policy", "jobs"):
        if axis not in cube.dims:
            continue
        labels = [shortened(str(label)) for label in cube[axis].values]
        found[axis] = [
            label if labels.count(label) == 1 else f"{label} {place + 1}"
            for place, label in enumerate(labels)
        ]
    return cube.assign_coords(found)


def shortened(text: str) -> str:
    r"""Cut a label that is too long, but not inside a formula.

    Examples
    --------
    >>> shortened("a label"), shortened("x" * 32 + r" $\lambda^{2}$")
    ('a label', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…')
    """
    if len(text) <= LONGEST_LABEL:
        return text
    head = text[: LONGEST_LABEL - 1]
    if len(re.findall(r"(?<!\\)\$", head)) % 2:
        head = head[: head.rindex("$")]
    return f"{head.rstrip()}…"


def heading(here: "xr.Dataset", cube: "xr.Dataset", fixed: list[str]) -> str:
    """Say what a panel shows: labels of which there are several, and numbers."""
    from manyserver.figures.drawing import style

    told = []
    for axis in fixed:
        if axis == "policy":
            place = list(cube["policy"].values).index(here["policy"].values)
            told.append(style.looks(cube)[place].label)
        elif axis == "system":
            told += [str(here["system"].values)] * (cube.sizes["system"] > 1)
        else:
            told.append(named(cube, axis, float(here[axis])))
    return ", ".join(told)


def numeric_axes(cube: "xr.Dataset") -> tuple[str, ...]:
    """Return the axes of numbers: rates or loads, ``n_servers``, and those of the study's own."""
    return rate_dimension(cube), "n_servers", *own_axes(cube)


def check_axis(option: str, axis: str, known: tuple[str, ...]) -> None:
    """Check the name of an axis that an option gives.

    Raises
    ------
    ValueError
        If it is not a known one.
    """
    if axis not in known:
        allowed = ", ".join(known)
        raise ValueError(f"{option} = {axis!r}: is not in the cube; must be one of {allowed}")


def x_label(cube: "xr.Dataset", axis: str) -> str:
    """Return the label of an axis: words and a symbol."""
    from manyserver.figures.drawing import style

    return style.AXIS_LABELS.get(axis) or title(cube, axis)


def read(
    cube: "xr.Dataset",
    variable: str,
    dimension: str,
    wanted: str | Role,
    n_servers: float | None = None,
) -> Curve:
    """Read `variable` along `dimension` from a slice that has no other dimension left.

    The method is given by its name or role. One that the cube does not hold gives missing values,
    and so does such a number of servers. What no method computes belongs to the limit alone.
    """
    x = np.asarray(cube[dimension].values, dtype=float)
    missing = Curve(x, np.full(x.size, np.nan), np.zeros(x.size))
    method = method_of(cube, wanted)
    if not method or variable not in cube:
        return missing
    if METHOD not in cube[variable].dims and wanted is not Role.LIMIT:
        return missing
    part = cube.sel({METHOD: method})
    if n_servers is not None:
        if n_servers not in part["n_servers"].values:
            return missing
        part = part.sel(n_servers=n_servers)
    values = np.asarray(part[variable].values, dtype=float)
    name = f"{variable}_half_width"
    half_widths = np.nan_to_num(part[name].values) if name in part else np.zeros(x.size)
    return Curve(x, values, half_widths)


def slices(cube: "xr.Dataset", variable: str, *dimensions: str) -> "list[xr.Dataset]":
    """Return the slices at every combination of labels that hold any value of `variable`.

    Raises
    ------
    ValueError
        If there is none.
    """
    if variable in cube:
        found = [
            here for here in points(cube, *dimensions) if np.isfinite(here[variable].values).any()
        ]
        if found:
            return found
    raise ValueError(f"{variable}: the cube holds no value to draw")


def finite_servers(cube: "xr.Dataset", wanted: int | None) -> float | None:
    """Return the number of servers whose simulation is drawn: the wanted or the largest one.

    Raises
    ------
    ValueError
        If `wanted` is not in the cube.
    """
    servers = cube["n_servers"].values
    if wanted is not None:
        return float(select(cube, n_servers=[float(wanted)])["n_servers"].values[0])
    finite = servers[np.isfinite(servers)]
    return float(finite.max()) if finite.size else None


def served(cube: "xr.Dataset", variable: str) -> Iterator[tuple[int, int]]:
    """Yield the positions (system, policy) at which a cube holds any value of `variable`."""
    if variable not in cube:
        return
    for system in range(cube.sizes["system"]):
        for policy in range(cube.sizes["policy"]):
            if np.isfinite(cube[variable].isel(system=system, policy=policy).values).any():
                yield system, policy
