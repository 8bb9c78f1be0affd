"""The axes of a cube that its study has of its own, beside systems, policies and rates."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from manyserver.analysis.curves import rate_dimension, select
from manyserver.study.config.axes import untitled

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["at_values", "named", "own_axes", "side_by_side", "spread_out", "title", "written"]

LARGEST_DENOMINATOR = 30
"""Ratios with smaller ones are written as ratios."""


def own_axes(cube: "xr.Dataset") -> tuple[str, ...]:
    """Return the dimensions of a cube that are axes of its study's own."""
    return tuple(str(dim) for dim in cube.dims if "exact" in cube[dim].attrs)


def title(cube: "xr.Dataset", axis: str) -> str:
    """Return the label of an axis for figures: what it is, and its symbol."""
    told = cube[axis].attrs
    words, symbol = told.get("long_name", axis), told.get("symbol", axis)
    if words == untitled(axis):
        return f"${symbol}$"
    return f"{words[0].upper()}{words[1:]}, ${symbol}$"


def written(cube: "xr.Dataset", axis: str, value: float) -> str:
    """Write a value of an axis, as ``3/2``; rates and loads are decimal numbers."""
    near = Fraction(float(value)).limit_denominator(LARGEST_DENOMINATOR)
    ratio = axis != rate_dimension(cube) and abs(float(near) - value) < 1e-12 * abs(value)
    return str(near) if ratio else f"{value:.6g}"


def named(cube: "xr.Dataset", axis: str, value: float) -> str:
    """Write a value of an axis with its symbol, as ``$r = 3/2$``."""
    return f"${cube[axis].attrs.get('symbol', axis)} = {written(cube, axis, value)}$"


def at_values(cube: "xr.Dataset", at: Mapping[str, Iterable[Any]]) -> "xr.Dataset":
    """Keep some values of axes.

    Raises
    ------
    ValueError
        If the cube has no such axis, or no such value on it.
    """
    return select(cube, **{axis: [float(value) for value in kept] for axis, kept in at.items()})


def spread_out(cube: "xr.Dataset", keep: Sequence[str] = ()) -> "xr.Dataset":
    """Take every value of the study's own axes for a system, or a policy, of its own.

    Parameters
    ----------
    cube : xarray.Dataset
        Without the dimension ``jobs``.
    keep : sequence of str
        Axes that stay.

    Returns
    -------
    xarray.Dataset
        Without the other axes. Those that systems depend on have made systems, the others
        policies; a policy that does not depend on an axis is there once.
    """
    for axis in own_axes(cube):
        if axis in keep:
            continue
        of_system = ("pool_speed", "pool_buffer", "arrival_rate", "load", "size_parameters")
        if any(axis in cube[name].dims for name in of_system if name in cube.coords):
            parts = [cube.isel({axis: i}) for i in range(cube.sizes[axis])]
            labels = [named(cube, axis, value) for value in cube[axis].values]
            cube = side_by_side(parts, axis, labels)
        else:
            cube = _as_policies(cube, axis)
    return cube


def side_by_side(parts: "list[xr.Dataset]", axis: str, labels: Sequence[str]) -> "xr.Dataset":
    """Put slices of a cube side by side on the axis of the systems.

    Parameters
    ----------
    parts : list of xarray.Dataset
        They differ in the coordinate `axis`, and have none of their systems in common.
    axis : str
    labels : sequence of str
        What the parts are called.
    """
    import xarray as xr

    if len(parts) == 1:
        return parts[0].drop_vars(axis)
    systems = parts[0]["system"].values
    found = []
    for part, label in zip(parts, labels, strict=True):
        names = [f"{system}, {label}" if len(systems) > 1 else label for system in systems]
        # What describes the part describes each system in it.
        own = {
            name: ("system", np.repeat(coord.values, len(systems)))
            for name, coord in part.coords.items()
            if not coord.dims and name != axis
        }
        found.append(part.drop_vars(axis).assign_coords({**own, "system": names}))
    return xr.concat(found, "system", coords="minimal", compat="override", join="override")


def _as_policies(cube: "xr.Dataset", axis: str) -> "xr.Dataset":
    import xarray as xr

    told = cube["policy_parameters"]
    varies = np.zeros(cube.sizes["policy"], dtype=bool)
    if axis in told.dims:
        rows = told.transpose("policy", axis, ...).values.reshape(len(varies), told.sizes[axis], -1)
        varies = (rows != rows[:, :1]).any(axis=(1, 2))
    found = []
    for i, value in enumerate(cube[axis].values):
        part = cube.isel({axis: i}).drop_vars(axis)
        if i:
            part = part.isel(policy=varies)
        again = varies if i == 0 else varies[varies]
        labels = [
            f"{label}, {named(cube, axis, value)}" if more else str(label)
            for label, more in zip(part["policy"].values, again, strict=True)
        ]
        found.append(part.assign_coords(policy=labels))
    return xr.concat(found, "policy", coords="minimal", compat="override", join="override")
