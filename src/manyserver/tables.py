"""Tables of a variable over the axes of a cube, as a paper prints them: CSV and LaTeX."""

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from manyserver.analysis.axes import at_values, written
from manyserver.analysis.curves import half_width, method_of, rate_dimension, select
from manyserver.analysis.rounding import with_error
from manyserver.methods import METHOD, Role
from manyserver.study.config.tables import TableConfig

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["cells", "to_csv", "to_latex"]


def cells(cube: "xr.Dataset", config: TableConfig) -> "pd.DataFrame":
    """Return the values and half-widths of a table.

    Parameters
    ----------
    cube : xarray.Dataset
        Results of a study of dispatching policies.
    config : TableConfig

    Returns
    -------
    pandas.DataFrame
        One row for each row of the table, with a MultiIndex of its axes; the columns are a
        MultiIndex of the axes, and last ``value`` and ``half_width``, which is 0 for a value
        without an error, and left out for what no method has computed. Simulated values at finite
        numbers of servers, exact ones where there is no simulation, and the limit in the limit;
        rows and columns without a value are left out.

    Raises
    ------
    ValueError
        If the cube has no such variable or axis, or an axis with several values is in neither rows
        nor columns.
    """
    import pandas as pd

    if config.quantity not in cube:
        raise ValueError(f"quantity = {config.quantity!r}: is no variable of this cube")
    servers = None if config.n_servers is None else [float(n) for n in config.n_servers]
    cube = select(
        cube,
        system=_listed(config.systems),
        policy=_listed(config.policies),
        jobs=_listed(config.jobs),
        n_servers=servers,
        **{rate_dimension(cube): _listed(config.rates)},
    )
    cube = at_values(cube, config.at)
    axes = tuple(str(dim) for dim in cube[config.quantity].dims if dim != METHOD)
    told = (*config.rows, *config.columns)
    for axis in told:
        if axis not in axes:
            known = ", ".join(axes)
            raise ValueError(f"rows, columns: {axis!r} is not in the cube; must be one of {known}")
    for axis in axes:
        if axis not in told and cube.sizes[axis] > 1:
            raise ValueError(f"{axis}: has {cube.sizes[axis]} values; must be in rows or columns")
    places = {axis: range(cube.sizes[axis]) for axis in told}
    rows = list(product(*(places[axis] for axis in config.rows)))
    columns = list(product(*(places[axis] for axis in config.columns)))
    found = np.full((len(rows), len(columns), 2), np.nan)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            where = dict(zip(told, (*row, *column), strict=True))
            point = cube.isel(where).squeeze([axis for axis in axes if axis not in told])
            found[i, j] = _cell(point, config.quantity)
    index, head = (
        pd.MultiIndex.from_tuples([_labels(cube, axes, key) for key in keys], names=axes)
        for axes, keys in ((config.rows, rows), (config.columns, columns))
    )
    values, half_widths = (pd.DataFrame(found[..., k], index, head) for k in (0, 1))
    table = pd.concat({"value": values, "half_width": half_widths}, axis=1)
    table.columns = table.columns.reorder_levels([*range(1, table.columns.nlevels), 0])
    table = table[[(*key, part) for key in head for part in ("value", "half_width")]]
    return table.dropna(how="all").dropna(axis=1, how="all")


def _listed(labels: tuple[Any, ...] | None) -> list[Any] | None:
    return None if labels is None else list(labels)


def _cell(point: "xr.Dataset", quantity: str) -> tuple[float, float]:
    if METHOD not in point[quantity].dims:
        return float(point[quantity]), np.nan
    limit = np.isinf(float(point["n_servers"]))
    for role in (Role.LIMIT,) if limit else (Role.SIMULATION, Role.EXACT):
        if method := method_of(point, role):
            here = point.sel({METHOD: method})
            if np.isfinite(float(here[quantity])):
                return float(here[quantity]), half_width(here, quantity)
    return np.nan, np.nan


def _labels(cube: "xr.Dataset", axes: tuple[str, ...], key: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(_label(cube, axis, place) for axis, place in zip(axes, key, strict=True))


def _label(cube: "xr.Dataset", axis: str, place: int) -> str:
    value = cube[axis].values[place]
    if axis in ("system", "policy", "jobs"):
        return str(value)
    if axis == "n_servers":
        return "limit" if np.isinf(value) else f"{value:.0f}"
    return written(cube, axis, float(value))


def to_csv(table: "pd.DataFrame") -> "pd.DataFrame":
    """Return a table with one line of column names, such as ``100 exponential half_width``."""
    flat = table.copy()
    flat.columns = [" ".join(map(str, key)).removesuffix(" value") for key in table.columns]
    return flat.reset_index()


def to_latex(table: "pd.DataFrame", caption: str = "") -> str:
    """Return a table in LaTeX, for the package booktabs.

    A value is followed by its half-width in units of the last digit, as in ``1.764(3)``.
    """
    heads = list(dict.fromkeys(key[:-1] for key in table.columns))
    texts = {}
    for head in heads:
        values = table[(*head, "value")]
        pair = zip(values, table.get((*head, "half_width"), 0 * values), strict=True)
        texts[head] = [
            "" if np.isnan(value) else with_error(value, width if np.isfinite(width) else 0.0)
            for value, width in pair
        ]
    shown = type(table)(texts, index=table.index)
    shown.columns.names = table.columns.names[:-1]
    styler = shown.style.format(escape="latex").format_index(escape="latex", axis=0)
    return str(
        styler.format_index(escape="latex", axis=1).to_latex(
            hrules=True, caption=caption or None, multicol_align="c"
        )
    )
