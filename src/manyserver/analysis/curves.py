"""Read curves and points out of a cube."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from manyserver import methods
from manyserver.methods import METHOD, ROLE, Role
from manyserver.model import Pool, System

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "NORMAL_QUANTILE",
    "at_limit",
    "each_jobs",
    "finite",
    "half_width",
    "known_levels",
    "method_of",
    "methods_of",
    "points",
    "rate_dimension",
    "required_method",
    "required_methods",
    "select",
    "standard_errors",
    "student_error",
    "system_of",
]

NORMAL_QUANTILE = 1.959963984540054
"""Half-width of a 95 % interval over the standard error."""


def rate_dimension(cube: "xr.Dataset") -> str:
    """Return the dimension that a cube sweeps: ``load`` or ``arrival_rate``."""
    return "load" if "load" in cube.dims else "arrival_rate"


def select(cube: "xr.Dataset", **wanted: list[Any] | None) -> "xr.Dataset":
    """Keep some labels of some dimensions, in the order asked for; None keeps all.

    Raises
    ------
    ValueError
        If a label is not in the cube; the error names those that are.
    """
    for dimension, labels in wanted.items():
        if labels is None:
            continue
        if dimension not in cube.dims:
            raise ValueError(f"{dimension} = {labels!r}: is not an axis of the cube")
        there = cube[dimension].values
        places = []
        for label in labels:
            if isinstance(label, str):
                found = np.flatnonzero(there == label)
            else:
                found = np.flatnonzero(np.isclose(there, label, rtol=1e-9, atol=0))
            if not found.size:
                raise ValueError(
                    f"{dimension} = {label!r}: is not in the cube; must be one of "
                    f"{', '.join(str(value) for value in there)}"
                )
            places.append(int(found[0]))
        cube = cube.isel({dimension: places})
    return cube


def methods_of(cube: "xr.Dataset", *wanted: str | Role) -> list[str]:
    """Return the methods of a cube that have one of the wanted names or roles.

    They are in the order of `wanted`, and in one role in that of the cube. A cube that was made by
    hand need not tell roles; then each method has the one that its class names.
    """
    names = [str(name) for name in np.atleast_1d(cube[METHOD].values)]
    if ROLE in cube.coords:
        roles = dict(zip(names, np.atleast_1d(cube[ROLE].values), strict=True))
    else:
        known = set(names) & set(methods.names())
        roles = {name: methods.load(name).role.value for name in known}
    found = [
        name
        for one in wanted
        for name in names
        if (roles.get(name) == one.value if isinstance(one, Role) else name == one)
    ]
    return list(dict.fromkeys(found))


def method_of(cube: "xr.Dataset", wanted: str | Role) -> str:
    """Return the first of :func:`methods_of`; empty if there is none."""
    return next(iter(methods_of(cube, wanted)), "")


def required_methods(cube: "xr.Dataset", *wanted: str | Role) -> list[str]:
    """Return :func:`methods_of`, of which each that is wanted must be there.

    Raises
    ------
    ValueError
        If one is not; the error names those that are.
    """
    for one in wanted:
        if not method_of(cube, one):
            there = ", ".join(str(name) for name in cube[METHOD].values)
            if isinstance(one, str):
                raise ValueError(f"method = {one!r}: is not in the cube; must be one of {there}")
            raise ValueError(f"method: none in the cube has the role {one.value}; it has {there}")
    return methods_of(cube, *wanted)


def required_method(cube: "xr.Dataset", wanted: str | Role) -> str:
    """Return the first of :func:`required_methods`."""
    return required_methods(cube, wanted)[0]


def each_jobs(cube: "xr.Dataset", wanted: list[str] | None = None) -> "list[xr.Dataset]":
    """Return a cube for each label of job sizes and discipline; the cube itself if it has none.

    Raises
    ------
    ValueError
        If a wanted label is not in the cube.
    """
    cube = select(cube, jobs=wanted)
    if "jobs" not in cube.dims:
        return [cube]
    return [cube.isel(jobs=place) for place in range(cube.sizes["jobs"])]


def points(cube: "xr.Dataset", *dimensions: str) -> Iterator["xr.Dataset"]:
    """Yield the slices of a cube at every combination of labels of `dimensions`."""
    shape = tuple(cube.sizes[dimension] for dimension in dimensions)
    for place in np.ndindex(shape):
        yield cube.isel(dict(zip(dimensions, place, strict=True)))


def system_of(point: "xr.Dataset") -> System:
    """Return the system of a slice that has one system and one arrival rate, in the limit."""
    there = np.isfinite(point["pool_speed"].values)
    bounded = "pool_buffer" in point.coords
    buffers = point["pool_buffer"].values[there] if bounded else np.full(there.sum(), np.inf)
    pools = [
        Pool(float(fraction), float(speed), int(buffer) if np.isfinite(buffer) else None)
        for fraction, speed, buffer in zip(
            point["pool_fraction"].values[there],
            point["pool_speed"].values[there],
            buffers,
            strict=True,
        )
    ]
    return System(float(point["arrival_rate"]), pools)


def finite(curve: "xr.Dataset", wanted: str | Role, variable: str) -> "xr.Dataset":
    """Return the points at finite ``n_servers`` at which a method has a value of `variable`.

    The method is given by its name or role.
    """
    here = curve.sel({METHOD: method_of(curve, wanted)})
    there = np.isfinite(here["n_servers"].values)
    if variable not in here:
        return here.isel(n_servers=np.zeros_like(there))
    values = here[variable].transpose("n_servers", ...).values
    known = np.isfinite(values).reshape(len(there), -1).any(axis=1)
    return here.isel(n_servers=there & known)


def at_limit(curve: "xr.Dataset", wanted: str | Role, variable: str) -> "xr.DataArray | None":
    """Return `variable` in the limit; None if there is no such point or it has no value."""
    if np.inf not in curve["n_servers"].values or variable not in curve:
        return None
    value = curve[variable].sel({METHOD: method_of(curve, wanted), "n_servers": np.inf})
    return value if np.isfinite(value.values).any() else None


def standard_errors(part: "xr.Dataset", variable: str) -> np.ndarray | None:
    """Return the standard errors of a variable; None if its method has none."""
    name = f"{variable}_half_width"
    if name not in part or np.isnan(part[name].values).all():
        return None
    return np.asarray(part[name].values, dtype=float) / NORMAL_QUANTILE


def half_width(place: "xr.Dataset", variable: str) -> float:
    """Return the half-width of a variable at a point: 0 of an exact method, NaN if not known."""
    name = f"{variable}_half_width"
    width = float(place[name]) if name in place else np.nan
    simulated = "n_batches" in place and bool(np.isfinite(place["n_batches"]))
    return 0.0 if np.isnan(width) and not simulated else width


def student_error(place: "xr.Dataset", variable: str) -> tuple[float, float]:
    """Return the standard error of a variable at a point, and the degrees of freedom behind it.

    Zero and infinitely many of an exact method; NaN if the half-width is not known.
    """
    width = half_width(place, variable)
    if width == 0 or "n_batches" not in place or np.isnan(place["n_batches"]):
        return width / NORMAL_QUANTILE, np.inf
    # Imported here as it imports scipy.
    from manyserver.statistics.estimates import standard_error

    freedom = max(1.0, float(place["n_batches"]) - 1 - float(place["n_controls"]))
    return float(standard_error(width, freedom)), freedom


def known_levels(tail: np.ndarray) -> np.ndarray:
    """Cut the missing levels off the end, where other points of the cube go deeper."""
    known = np.flatnonzero(~np.isnan(tail))
    return tail[: int(known[-1]) + 1] if known.size else tail[:0]
