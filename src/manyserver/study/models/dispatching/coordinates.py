"""The axes of a cube of dispatching policies, and what describes them."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

import numpy as np

from manyserver.methods import METHOD, ROLE
from manyserver.model import Pool, exact_capacity
from manyserver.policies import Policy
from manyserver.policies.stability_limit import stability_limit
from manyserver.study.config.axes import Axis, untitled
from manyserver.study.models.dispatching.jobs import Jobs
from manyserver.study.models.dispatching.spread import Axes, Spread, as_label
from manyserver.study.points import canonical
from manyserver.variables import DECILES, DIMENSIONS, QUANTILES, SCHEMA

__all__ = ["coordinates", "is_taken", "stability"]

T = TypeVar("T")
OWN = (METHOD, ROLE, "system", "policy", "jobs", "n_servers", "arrival_rate", "load")
OF_PARTS = (
    "policy_name",
    "policy_parameters",
    "pool_speed",
    "pool_fraction",
    "pool_buffer",
    "size_law",
    "size_parameters",
    "discipline",
    "size_scv",
    "measured_mean",
)
OF_POINTS = ("point_id", "point_seed", "status", "reason")


def is_taken(name: str) -> bool:
    """Whether a cube has a dimension or a variable of this name.

    Examples
    --------
    >>> is_taken("load"), is_taken("sojourn_mean_half_width"), is_taken("r")
    (True, True, False)
    """
    try:
        SCHEMA.lookup(name)
    except KeyError:
        inner = {dim for variable in SCHEMA.variables.values() for dim in variable.dims}
        return name in {*OWN, *OF_PARTS, *OF_POINTS, *inner, *DIMENSIONS, "time"}
    return True


def coordinates(
    axes: Axes,
    systems: Mapping[str, Spread[tuple[Pool, ...]]],
    policies: Mapping[str, Spread[Policy]],
    jobs: Mapping[str, Spread[Jobs]],
) -> dict[str, Any]:
    """Describe the axes, the policies, the jobs, and the systems with their pools and loads."""
    return {
        **{name: _own(name, axis) for name, axis in axes.own.items()},
        "policy_name": ("policy", [next(iter(policy)).name for policy in policies.values()]),
        "policy_parameters": _table(
            "policy", axes, policies, lambda policy: canonical(policy.parameters)
        ),
        **_rates(axes, systems),
        **_pools(axes, systems),
        **(_jobs(axes, jobs) if jobs else {}),
    }


def _own(name: str, axis: Axis) -> tuple[str, list[Any], dict[str, str]]:
    described = {
        "units": "1",
        "symbol": axis.symbol or name,
        "long_name": axis.title or untitled(name),
        # Floats do not tell 2/3 from what is near it.
        "exact": ", ".join(str(value).lower() for value in axis.values),
    }
    return axis.along or name, [as_label(value) for value in axis.values], described


def _table(
    label: str, axes: Axes, things: Mapping[str, Spread[T]], tell: Callable[[T], Any]
) -> tuple[tuple[str, ...], np.ndarray]:
    """Tell something of all things, along their labels and the axes on which any depends."""
    dims = axes.dims_of(*things.values())
    told = [[tell(thing.at(place)) for place in axes.places(dims)] for thing in things.values()]
    shape = (len(things), *(len(axes.values[dim]) for dim in dims))
    array = np.array(told)
    return (label, *dims), array.reshape(shape + array.shape[2:])


def _rates(axes: Axes, systems: Mapping[str, Spread[tuple[Pool, ...]]]) -> dict[str, Any]:
    _, name = axes.fixed
    values = np.array([float(rate) for rate in axes.values[name]])
    dims, capacity = _table("system", axes, systems, lambda pools: float(exact_capacity(pools)))
    rate = {"units": "jobs/time", "symbol": r"\lambda", "long_name": "arrival rate per server"}
    load = {"units": "1", "symbol": r"\rho", "long_name": "load: arrival rate over capacity"}
    if name not in dims:
        dims, capacity = (*dims, name), capacity[..., np.newaxis]
    if name == "arrival_rate":
        return {"arrival_rate": (name, values, rate), "load": (dims, values / capacity, load)}
    return {"load": (name, values, load), "arrival_rate": (dims, values * capacity, rate)}


def _pools(axes: Axes, systems: Mapping[str, Spread[tuple[Pool, ...]]]) -> dict[str, Any]:
    most = max(len(pools) for spread in systems.values() for pools in spread)
    buffer = {"units": "jobs", "symbol": "B_j", "long_name": "most jobs at a server of the pool"}
    speed = {"units": "1", "symbol": "C_j", "long_name": "speed of a server of the pool"}
    fraction = {"units": "1", "symbol": r"\gamma_j", "long_name": "fraction of the servers"}

    def told(value: Callable[[Pool], float]) -> tuple[tuple[str, ...], np.ndarray]:
        def of_all(pools: tuple[Pool, ...]) -> list[float]:
            return [*map(value, pools), *[np.nan] * (most - len(pools))]

        dims, array = _table("system", axes, systems, of_all)
        return (*dims, "pool"), array

    return {
        "pool_speed": (*told(lambda pool: float(pool.speed)), speed),
        "pool_fraction": (*told(lambda pool: float(pool.fraction)), fraction),
        "pool_buffer": (
            *told(lambda pool: np.inf if pool.buffer is None else pool.buffer),
            buffer,
        ),
    }


def stability(
    axes: Axes,
    systems: Mapping[str, Spread[tuple[Pool, ...]]],
    policies: Mapping[str, Spread[Policy]],
) -> dict[str, Any]:
    """Return the load up to which every policy can serve every system."""
    dims = axes.dims_of(*systems.values(), *policies.values())
    limit = cache(_limit)
    places = list(axes.places(dims))
    found = [
        [
            [limit(pools.at(place), policy.at(place)) for place in places]
            for policy in policies.values()
        ]
        for pools in systems.values()
    ]
    shape = (len(systems), len(policies), *(len(axes.values[dim]) for dim in dims))
    described = SCHEMA.lookup("stability_limit").attributes
    return {"stability_limit": (("system", "policy", *dims), np.reshape(found, shape), described)}


def _limit(pools: tuple[Pool, ...], policy: Policy) -> float:
    try:
        return stability_limit(pools, policy)
    except ValueError:
        return np.nan  # A policy for systems of another number of pools.


def _jobs(axes: Axes, jobs: Mapping[str, Spread[Jobs]]) -> dict[str, Any]:
    scv = {"units": "1", "symbol": "c^2", "long_name": "squared coefficient of variation of sizes"}
    measured = {"units": "", "long_name": "mean of measured sizes, in the units of their file"}

    def told(tell: Callable[[Jobs], Any]) -> tuple[tuple[str, ...], np.ndarray]:
        return _table("jobs", axes, jobs, tell)

    return {
        "size_law": told(lambda one: one.sizes.name),
        "size_parameters": told(lambda one: canonical(one.told["sizes"])),
        "discipline": told(lambda one: one.discipline.name),
        "size_scv": (*told(lambda one: float(one.sizes.scv)), scv),
        "measured_mean": (
            *told(lambda one: float(getattr(one.sizes, "measured_mean", np.nan))),
            measured,
        ),
        "quantile": ("quantile", np.array(QUANTILES), DIMENSIONS["quantile"]),
        "size_decile": ("size_decile", np.arange(1, DECILES + 1), DIMENSIONS["size_decile"]),
    }
