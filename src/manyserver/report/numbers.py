"""Numbers of a study in words and in a table, read from its cube."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from manyserver.analysis.axes import own_axes, spread_out
from manyserver.analysis.curves import method_of, rate_dimension
from manyserver.claims.table import plus_minus
from manyserver.methods import METHOD, Role

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["READ", "Table", "answers", "main_table"]

MOST_COLUMNS = 7
MOST_NAMED = 4
MOST_ROWS = 120
"""Rows of a table; longer ones are in the cube alone."""
FEWEST_POINTS = 3
"""Points of which winners are counted."""
SMALLEST_EXPECTED = 0.05
"""Fitted values are compared with theory by their ratio, if that is not smaller."""
ALIKE = 1e-6
"""Relative difference of mean sojourn times that are called the same."""
MEAN, WAITING, GAP = "sojourn_mean", "scaled_waiting_mean", "spectral_gap"
READ = (
    MEAN,
    f"{MEAN}_half_width",
    WAITING,
    GAP,
    "waiting_probability",
    "blocking_probability",
    "router_idle",
    "fluid_y1",
    "fluid_y2",
)
"""Variables that are read; `router_idle` has the axis of the routers."""


@dataclass(frozen=True)
class Table:
    """A table for people.

    Parameters
    ----------
    caption : str
        What the numbers are.
    columns : tuple of str
        Heads of the columns, the first that of the labels.
    rows : tuple of tuple of str
        A label and the numbers of each row.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def main_table(cube: "xr.Dataset") -> Table | None:
    """Return the numbers that a study is about; None if it has none of those that are known.

    For dispatching policies these are mean sojourn times, in the limit or else at the largest
    number of servers; in the Halfin-Whitt regime, what is known of the waiting customers or of the
    spectral gap.
    """
    if MEAN in cube and "policy" in cube.dims:
        return _of_policies(_without_axes(cube))
    for name in (WAITING, GAP):
        if name in cube:
            return _of_regime(cube, name)
    return None


def answers(cube: "xr.Dataset", fits: "pd.DataFrame | None" = None) -> list[str]:
    """Return sentences with what the numbers of a study say."""
    cube = _without_axes(cube)
    parts = (_best, _winners, _waiting, _finite, _of_sizes, _regime, _paths)
    found = [sentence for part in parts for sentence in part(cube)]
    return found if fits is None else [*found, *_fitted(fits)]


def _without_axes(cube: "xr.Dataset") -> "xr.Dataset":
    """Make systems or policies of the values of a study's own axes, with labels in plain text."""
    if not own_axes(cube) or MEAN not in cube:
        return cube
    wanted = [name for name in (MEAN, f"{MEAN}_half_width") if name in cube]
    spread = spread_out(cube.drop_vars([name for name in cube.data_vars if name not in wanted]))
    plain = {
        axis: [str(label).replace("$", "") for label in spread[axis].values]
        for axis in ("system", "policy")
    }
    return spread.assign_coords(plain)


def _reference(cube: "xr.Dataset", variable: str) -> "tuple[xr.Dataset, str] | None":
    """Return the limit, or else the largest finite systems, and what they are called."""
    limit, servers = method_of(cube, Role.LIMIT), cube["n_servers"].values
    if limit and np.inf in servers:
        there = cube.sel({METHOD: limit, "n_servers": np.inf})
        if np.isfinite(there[variable].values).any():
            return there, "in the limit of many servers"
    for role in (Role.SIMULATION, Role.EXACT):
        method = method_of(cube, role)
        if method and np.isfinite(servers).any():
            n = servers[np.isfinite(servers)].max()
            return cube.sel({METHOD: method, "n_servers": n}), f"with {n:.0f} servers"
    return None


def _curves(cube: "xr.Dataset") -> "Iterator[tuple[tuple[str, ...], xr.Dataset]]":
    """Yield the slices of each system and each of the job sizes, with what they are called.

    Both names are there, or one or none if there is one of a kind only.
    """
    dims = [dim for dim in ("system", "jobs") if dim in cube.dims]
    several = [dim for dim in dims if cube.sizes[dim] > 1]
    for place in np.ndindex(*(cube.sizes[dim] for dim in dims)):
        here = cube.isel(dict(zip(dims, place, strict=True)))
        yield tuple(str(here[dim].values) for dim in several), here


def _half_widths(there: "xr.Dataset", variable: str) -> np.ndarray:
    name = f"{variable}_half_width"
    if name in there:
        return np.asarray(there[name].values)
    return np.zeros(there[variable].shape)


def _of_policies(cube: "xr.Dataset") -> Table | None:
    chosen = _reference(cube, MEAN)
    if chosen is None:
        return None
    there, called = chosen
    axis = rate_dimension(cube)
    rates = np.atleast_1d(there[axis].values)
    places = np.unique(np.linspace(0, rates.size - 1, MOST_COLUMNS).round().astype(int))
    rows = []
    for label, here in _curves(there):
        for policy in here["policy"].values:
            part = here.sel(policy=policy)
            values = np.atleast_1d(part[MEAN].values)
            if np.isfinite(values).any():
                widths = np.atleast_1d(_half_widths(part, MEAN))
                cells = [plus_minus(values[i], widths[i]) for i in places]
                rows.append((", ".join((str(policy), *label)), *cells))
    if len(rows) > MOST_ROWS:
        return None
    words = axis.replace("_", " ")
    head = (f"Policy, by {words}", *(f"{rates[i]:g}" for i in places))
    return Table(f"Mean sojourn times {called}", head, tuple(rows))


def _of_regime(cube: "xr.Dataset", variable: str) -> Table:
    rows = []
    for n in cube["n_servers"].values:
        cells = []
        for beta in cube["beta"].values:
            here = cube[variable].sel(n_servers=n, beta=beta).values
            known = here[np.isfinite(here)]
            cells.append(plus_minus(float(known[0])) if known.size else "")
        rows.append(("limit" if np.isinf(n) else f"{n:.0f}", *cells))
    head = ("Servers, by beta", *(f"{beta:g}" for beta in cube["beta"].values))
    meaning = cube[variable].attrs.get("long_name", variable.replace("_", " "))
    return Table(meaning[:1].upper() + meaning[1:], head, tuple(rows))


def _best(cube: "xr.Dataset") -> Iterator[str]:
    """Say which policy has the least mean sojourn time at the highest load."""
    chosen = _reference(cube, MEAN) if MEAN in cube and "policy" in cube.dims else None
    if chosen is None:
        return
    there, called = chosen
    axis = rate_dimension(cube)
    said: dict[str, list[tuple[str, ...]]] = {}
    jobs = cube.sizes.get("jobs", 1)
    for label, here in _curves(there):
        there_are = np.isfinite(here[MEAN].transpose("policy", axis).values).any(axis=0)
        known = here.isel({axis: there_are})
        if known.sizes[axis]:
            last = known.isel({axis: -1})
            where = f"at {axis.replace('_', ' ')} {float(last[axis]):g}, {called}"
            said.setdefault(f"{where}, {_extremes(last)}", []).append(label)
    if len(said) > MOST_NAMED:
        return
    for sentence, labels in said.items():
        # What is the same everywhere needs no place.
        place = "" if len(said) == 1 else f"{_joined(labels, jobs)}: "
        yield f"{place or sentence[0].upper()}{sentence if place else sentence[1:]}."


def _winners(cube: "xr.Dataset") -> Iterator[str]:
    """Say at how many points each policy has the least mean sojourn time."""
    chosen = _reference(cube, MEAN) if MEAN in cube and "policy" in cube.dims else None
    if chosen is None or cube.sizes["policy"] < 2:
        return
    there, called = chosen
    means = there[MEAN].transpose("policy", ...)
    flat = means.values.reshape(means.sizes["policy"], -1)
    flat = flat[:, np.isfinite(flat).sum(axis=0) > 1]
    if flat.shape[1] < FEWEST_POINTS:
        return
    best = flat <= np.nanmin(flat, axis=0) * (1 + ALIKE)
    if best.all():
        return
    counts = Counter(dict(zip(means["policy"].values, best.sum(axis=1).tolist(), strict=True)))
    top = counts.most_common(MOST_NAMED)
    told = ", ".join(f"{name} at {count}" for name, count in top if count)
    yield (
        f"Of {flat.shape[1]} points {called}, the mean is least, alone or with others, under "
        f"{told}."
    )


def _extremes(here: "xr.Dataset") -> str:
    """Say under which policies jobs stay shortest and longest."""
    values, widths, names = here[MEAN].values, _half_widths(here, MEAN), here["policy"].values
    best, worst = int(np.nanargmin(values)), int(np.nanargmax(values))
    if values[worst] - values[best] <= ALIKE * values[best]:
        whom = names[best] if np.isfinite(values).sum() == 1 else "all policies"
        return f"jobs stay {plus_minus(values[best], widths[best])} under {whom}"
    least, most = (plus_minus(values[i], widths[i]) for i in (best, worst))
    return (
        f"jobs stay shortest under {names[best]}, {least}, and longest under {names[worst]}, {most}"
    )


def _joined(labels: list[tuple[str, ...]], jobs: int) -> str:
    """Write the names of some curves, without those of the job sizes if all of these are there."""
    systems = list(dict.fromkeys(label[0] for label in labels))
    if len(labels[0]) == 2 and len(labels) == jobs * len(systems):
        labels = [(system,) for system in systems]
    shown = [", ".join(label) for label in labels]
    return "; ".join([*shown[:MOST_NAMED], *["others"] * (len(shown) > MOST_NAMED)])


def _waiting(cube: "xr.Dataset") -> Iterator[str]:
    """Say how many jobs wait or are blocked, where that is what policies are about."""
    method, servers = method_of(cube, Role.SIMULATION), cube["n_servers"].values
    finite = servers[np.isfinite(servers)]
    pulls = "router" in cube.dims and bool((cube["policy_name"].values == "pull").all())
    if not pulls or not method or not finite.size:
        return
    here = cube.sel({METHOD: method, "n_servers": finite.max()})
    waiting, blocking = (
        100 * float(here[name].max()) for name in ("waiting_probability", "blocking_probability")
    )
    yield (
        f"With {finite.max():.0f} servers, simulated, at most {waiting:.2g} % of the jobs wait "
        f"and {blocking:.2g} % are blocked."
    )


def _finite(cube: "xr.Dataset") -> Iterator[str]:
    """Say how far simulations are from the limit."""
    limit, simulation = method_of(cube, Role.LIMIT), method_of(cube, Role.SIMULATION)
    servers = cube["n_servers"].values
    finite = np.sort(servers[np.isfinite(servers)])
    if MEAN not in cube or not (limit and simulation and finite.size) or np.inf not in servers:
        return
    base = cube[MEAN].sel({METHOD: limit, "n_servers": np.inf}, drop=True)
    for n in dict.fromkeys((finite[0], finite[-1])):
        here = cube[MEAN].sel({METHOD: simulation, "n_servers": n}, drop=True)
        deviation = abs(here / base - 1).values
        if np.isfinite(deviation).any():
            yield (
                f"With {n:.0f} servers the simulated means are within "
                f"{_share(float(np.nanmax(deviation)))} of the limit."
            )


def _of_sizes(cube: "xr.Dataset") -> Iterator[str]:
    """Say how much the job sizes change the mean."""
    simulation = method_of(cube, Role.SIMULATION)
    if "jobs" not in cube.dims or cube.sizes["jobs"] < 2 or MEAN not in cube or not simulation:
        return
    here = cube[MEAN].sel({METHOD: simulation})
    spread = (here.max("jobs") / here.min("jobs") - 1).values
    if np.isfinite(spread).any():
        yield (
            "The job sizes and the discipline change the simulated mean by "
            f"{100 * np.nanmax(spread):.2g} % at most."
        )


def _regime(cube: "xr.Dataset") -> Iterator[str]:
    """Say how far finite systems of the Halfin-Whitt regime are from the diffusion."""
    if WAITING in cube:
        limit = cube[WAITING].sel(n_servers=np.inf).max(METHOD)
        chain = method_of(cube, Role.EXACT)
        if chain:
            here = cube[WAITING].sel({METHOD: chain})
            known = here["n_servers"].values[np.isfinite(here.values).any(axis=0)]
            n = known[np.isfinite(known)].max()
            for beta in here["beta"].values[np.isfinite(here.sel(n_servers=n).values)][:1]:
                yield (
                    f"For beta = {beta:g}, the mean number of waiting customers over the square "
                    f"root of the servers is {float(here.sel(n_servers=n, beta=beta)):.4g} with "
                    f"{n:.0f} servers, and {float(limit.sel(beta=beta)):.4g} in the limit."
                )
    if GAP in cube:
        gaps = cube[GAP].sel(n_servers=np.inf).max(METHOD)
        low, high = (float(cube["beta"].values[place]) for place in (0, -1))
        yield (
            f"The spectral gap of the diffusion goes from {float(gaps[0]):.4g} at beta = {low:g} "
            f"to {float(gaps[-1]):.4g} at beta = {high:g}."
        )


def _paths(cube: "xr.Dataset") -> Iterator[str]:
    """Say where the paths of the fluid model end."""
    if "fluid_y1" in cube:
        last = cube[["fluid_y1", "fluid_y2"]].isel(step=-1)
        yield (
            f"All {cube.sizes['path']} paths end near ({float(last['fluid_y1'].mean()):.2f}, "
            f"{float(last['fluid_y2'].mean()):.2f})."
        )


def _fitted(fits: "pd.DataFrame") -> Iterator[str]:
    """Say how many fitted parameters are as theory says."""
    from manyserver.analysis.curves import NORMAL_QUANTILE

    if not {"parameter", "estimate", "standard_error", "expected"} <= set(fits):
        return
    # The target of a percentile is no theory.
    known = fits[fits["fit"] != "targets"].dropna(subset=["estimate", "standard_error", "expected"])
    for parameter, rows in known.groupby("parameter", sort=False):
        off = (rows["estimate"] - rows["expected"]).abs()
        close = int((off <= NORMAL_QUANTILE * rows["standard_error"]).sum())
        told = ""
        if (rows["expected"].abs() > SMALLEST_EXPECTED).all():
            middle = float((off / rows["expected"].abs()).median())
            told = f"; half of all are off by {_share(max(middle, 1e-5))} at most"
        yield (
            f"Of {len(rows)} fitted values of “{parameter}”, {close} agree with theory within "
            f"their 95 % intervals{told}."
        )


def _share(part: float) -> str:
    """Write a relative difference.

    Examples
    --------
    >>> _share(0.0234), _share(3.4)
    ('2.3 %', 'a factor of 4.4')
    """
    return f"{100 * part:.2g} %" if part < 1 else f"a factor of {1 + part:.2g}"
