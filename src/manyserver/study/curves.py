"""Read curves and points out of a cube."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from manyserver.model import Pool, System

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["NORMAL_QUANTILE", "points", "rate_dimension", "select", "system_of"]

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


def points(cube: "xr.Dataset", *dimensions: str) -> Iterator["xr.Dataset"]:
    """Yield the slices of a cube at every combination of labels of `dimensions`."""
    shape = tuple(cube.sizes[dimension] for dimension in dimensions)
    for place in np.ndindex(shape):
        yield cube.isel(dict(zip(dimensions, place, strict=True)))


def system_of(point: "xr.Dataset") -> System:
    """Return the system of a slice that has one system and one arrival rate, in the limit."""
    there = np.isfinite(point["pool_speed"].values)
    pools = [
        Pool(float(fraction), float(speed))
        for fraction, speed in zip(
            point["pool_fraction"].values[there], point["pool_speed"].values[there], strict=True
        )
    ]
    return System(float(point["arrival_rate"]), pools)
