"""The axes of a cube of dispatching policies, and what describes them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from manyserver.model import System
from manyserver.policies import Policy
from manyserver.study.models.dispatching.config import SweepConfig
from manyserver.study.models.dispatching.jobs import Jobs
from manyserver.study.points import canonical
from manyserver.variables import DECILES, DIMENSIONS, QUANTILES

__all__ = ["coordinates"]


def coordinates(
    sweep: SweepConfig,
    systems: list[System],
    policies: Mapping[str, Policy],
    jobs: Mapping[str, Jobs],
) -> dict[str, Any]:
    """Describe the policies, the jobs, and the systems with their pools and loads."""
    chosen = policies.values()
    return {
        "policy_name": ("policy", [policy.name for policy in chosen]),
        "policy_parameters": ("policy", [canonical(policy.parameters) for policy in chosen]),
        **_rates(sweep, systems),
        **_pools(systems),
        **(_jobs(list(jobs.values())) if jobs else {}),
    }


def _rates(sweep: SweepConfig, systems: list[System]) -> dict[str, Any]:
    name = sweep.rate_name
    values = np.array([float(rate) for rate in sweep.rates])
    capacity = np.array([system.capacity for system in systems])[:, np.newaxis]
    rate = {"units": "jobs/time", "symbol": r"\lambda", "long_name": "arrival rate per server"}
    load = {"units": "1", "symbol": r"\rho", "long_name": "load: arrival rate over capacity"}
    if name == "arrival_rate":
        return {
            "arrival_rate": ("arrival_rate", values, rate),
            "load": (("system", "arrival_rate"), values / capacity, load),
        }
    return {
        "load": ("load", values, load),
        "arrival_rate": (("system", "load"), values * capacity, rate),
    }


def _pools(systems: list[System]) -> dict[str, Any]:
    shape = (len(systems), max(len(system.pools) for system in systems))
    speeds, fractions, buffers = (np.full(shape, np.nan) for _ in range(3))
    for i, system in enumerate(systems):
        speeds[i, : len(system.pools)] = system.speeds
        fractions[i, : len(system.pools)] = system.fractions
        for j, pool in enumerate(system.pools):
            buffers[i, j] = np.inf if pool.buffer is None else pool.buffer
    speed = {"units": "1", "symbol": "C_j", "long_name": "speed of a server of the pool"}
    fraction = {"units": "1", "symbol": r"\gamma_j", "long_name": "fraction of the servers"}
    buffer = {"units": "jobs", "symbol": "B_j", "long_name": "most jobs at a server of the pool"}
    return {
        "pool_speed": (("system", "pool"), speeds, speed),
        "pool_fraction": (("system", "pool"), fractions, fraction),
        "pool_buffer": (("system", "pool"), buffers, buffer),
    }


def _jobs(jobs: list[Jobs]) -> dict[str, Any]:
    scv = {"units": "1", "symbol": "c^2", "long_name": "squared coefficient of variation of sizes"}
    measured = {"units": "", "long_name": "mean of measured sizes, in the units of their file"}
    means = [float(getattr(one.sizes, "measured_mean", np.nan)) for one in jobs]
    deciles = np.arange(1, DECILES + 1)
    return {
        "size_law": ("jobs", [one.sizes.name for one in jobs]),
        "size_parameters": ("jobs", [canonical(one.told["sizes"]) for one in jobs]),
        "discipline": ("jobs", [one.discipline.name for one in jobs]),
        "size_scv": ("jobs", [float(one.sizes.scv) for one in jobs], scv),
        "measured_mean": ("jobs", means, measured),
        "quantile": ("quantile", np.array(QUANTILES), DIMENSIONS["quantile"]),
        "size_decile": ("size_decile", deciles, DIMENSIONS["size_decile"]),
    }
