"""Cubes with the shape of a study's, from the mean field and an invented simulation of it."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np
import pytest
import xarray as xr

import manyserver as ms

Z = 1.96
TAILS = ("queue_tail", "queue_log_tail")
MEANS = ("sojourn_mean", "jobs_per_server", "waiting_probability")
VARIANCE, QUANTILE = "sojourn_variance", "sojourn_quantile"
QUANTILES = np.array([0.5, 0.9, 0.99, 0.999])
MESSAGES = "messages_per_job"
JOBS, SPREAD, PAIRS = "jobs_per_server_variance", "queue_tail_variance", "occupancy_covariance"
INNER = ("pool", "level", "other_pool", "other_level")
DEPTH = 8
SWEEP = ("system", "policy", "n_servers", "arrival_rate")
PolicySpec = tuple[str, str, dict[str, object]]

fixed_point = cache(ms.fixed_point)

CHEAP_AND_FAST = (("1/2", "1/5"), ("1/2", "9/5"))
ALL_POLICIES: Sequence[PolicySpec] = (
    ("scheme1 d=(2,2)", "scheme1", {"d": [2, 2]}),
    ("scheme2 d=(2,2)", "scheme2", {"d": [2, 2]}),
    ("sed d=(2,2)", "sed", {"d": [2, 2]}),
    ("optimal_split", "optimal_split", {}),
    ("hybrid_sq d=2 split=optimal", "hybrid_sq", {"d": 2, "split": "optimal"}),
    ("hybrid_sq d=2 split=naive", "hybrid_sq", {"d": 2, "split": "naive"}),
)


def make_cube(
    systems: Mapping[str, Sequence[tuple[str, str]]] = {"unequal": CHEAP_AND_FAST},
    policies: Sequence[PolicySpec] = ALL_POLICIES,
    arrival_rates: Sequence[float] = (0.3, 0.6, 0.9),
    n_servers: Sequence[int] = (10, 100, 1000),
    by_load: bool = False,
    precision: float = 0.01,
    seed: int = 1,
) -> xr.Dataset:
    """Compute the limit, and invent simulations with a bias of order 1/N and known errors."""
    generator = np.random.default_rng(seed)
    servers = [*map(float, n_servers), np.inf]
    points = {}
    for s, pools in enumerate(systems.values()):
        for p, (_, name, parameters) in enumerate(policies):
            for r, rate in enumerate(arrival_rates):
                capacity = ms.System(1e-6, [ms.Pool(*pool) for pool in pools]).capacity
                system = ms.System(
                    rate * capacity if by_load else rate, [ms.Pool(*pool) for pool in pools]
                )
                points[s, p, r] = fixed_point(system, ms.policy(name, **parameters))
    n_pools = max(len(pools) for pools in systems.values())
    levels = max(point.sizes["level"] for point in points.values())
    shape = (2, len(systems), len(policies), len(servers), len(arrival_rates))
    values = {name: np.full(shape, np.nan) for name in MEANS}
    values |= {name: np.full((*shape, n_pools, levels), np.nan) for name in TAILS}
    values[MESSAGES] = np.full(shape, np.nan)
    values[JOBS] = np.full(shape, np.nan)
    values[SPREAD] = np.full((*shape, n_pools, levels), np.nan)
    values[PAIRS] = np.full((*shape, n_pools, levels, n_pools, DEPTH), np.nan)
    simulated = (*MEANS, MESSAGES, "queue_tail", JOBS, SPREAD, PAIRS)
    values |= {f"{n}_half_width": np.full_like(values[n], np.nan) for n in simulated}
    for (s, p, r), point in points.items():
        n_levels = point.sizes["level"]
        for n, size in enumerate(servers):
            at = (s, p, n, r)
            for name in MEANS:
                limit = float(point[name])
                if np.isinf(size):
                    values[name][1, *at] = limit
                    continue
                error = precision * limit / Z / np.sqrt(size)
                noise = generator.normal(0, error)
                values[name][0, *at] = limit * (1 + 1 / size) + noise
                values[f"{name}_half_width"][0, *at] = Z * error
            if np.isfinite(size):
                values[MESSAGES][0, *at] = 2.0 * p
                values[f"{MESSAGES}_half_width"][0, *at] = 0.01
                values[JOBS][0, *at] = 2.0
                values[f"{JOBS}_half_width"][0, *at] = 0.1
            deep = (slice(point.sizes["pool"]), slice(n_levels))
            if np.isinf(size):
                for name in TAILS:
                    values[name][1, *at, *deep] = point[name].values
                continue
            tail = point["queue_tail"].values
            error = np.sqrt(tail * (1 - tail) / (1e4 * size))
            noisy = np.clip(tail + generator.normal(size=tail.shape) * error, 0, 1)
            values["queue_tail"][0, *at, *deep] = noisy
            values["queue_tail_half_width"][0, *at, *deep] = Z * error
            values[SPREAD][0, *at, *deep] = tail
            values[f"{SPREAD}_half_width"][0, *at, *deep] = 0.05 * tail
            depth = min(n_levels, DEPTH)
            both = (*deep[:1], slice(depth), *deep[:1], slice(depth))
            covariance = _covariance(tail, point["pool_fraction"].values, depth)
            values[PAIRS][0, *at, *both] = covariance
            values[f"{PAIRS}_half_width"][0, *at, *both] = 0.02 * np.abs(covariance)
    return with_laws(
        _dataset(values, systems, policies, servers, arrival_rates, by_load, n_pools, levels)
    )


def with_laws(cube: xr.Dataset) -> xr.Dataset:
    """Add variances and quantiles as if sojourn times were exponential."""
    mean = cube["sojourn_mean"]
    quantiles = xr.DataArray(QUANTILES, dims="quantile", coords={"quantile": QUANTILES})
    laws = {VARIANCE: mean**2, QUANTILE: -mean * np.log1p(-quantiles)}
    simulated = cube["sojourn_mean_half_width"].notnull()
    errors = {f"{name}_half_width": (0.05 * law).where(simulated) for name, law in laws.items()}
    return cube.assign({**laws, **errors})


def with_jobs(cube: xr.Dataset, **scv: float) -> xr.Dataset:
    """Put copies of a cube side by side, as those of laws of the job sizes by label."""
    laws = {
        "size_scv": ("jobs", list(scv.values())),
        "measured_mean": ("jobs", [2.0] * len(scv)),
    }
    return cube.expand_dims(jobs=list(scv)).transpose("method_name", ...).assign_coords(laws)


def _covariance(tail: np.ndarray, fractions: np.ndarray, depth: int) -> np.ndarray:
    """N times the covariance of the occupancies, with some dependence between all servers."""
    law = -np.diff(tail, axis=1, append=0.0)[:, :depth]
    step = np.array([1.0, -1.0, *[0.0] * (depth - 2)])
    covariance = np.tile(0.3 * np.outer(step, step), (len(law), len(law), 1, 1))
    for pool, (own, fraction) in enumerate(zip(law, fractions, strict=True)):
        covariance[pool, pool] += (np.diag(own) - np.outer(own, own)) / fraction
    return covariance.transpose(0, 2, 1, 3)


def _dataset(
    values: Mapping[str, np.ndarray],
    systems: Mapping[str, Sequence[tuple[str, str]]],
    policies: Sequence[PolicySpec],
    servers: Sequence[float],
    rates: Sequence[float],
    by_load: bool,
    n_pools: int,
    levels: int,
) -> xr.Dataset:
    swept, other = ("load", "arrival_rate") if by_load else ("arrival_rate", "load")
    dims = ("method_name", "system", "policy", "n_servers", swept)
    speeds = np.full((len(systems), n_pools), np.nan)
    fractions = np.full((len(systems), n_pools), np.nan)
    capacities = []
    for s, pools in enumerate(systems.values()):
        system = ms.System(1e-6, [ms.Pool(*pool) for pool in pools])
        speeds[s, : len(pools)] = system.speeds
        fractions[s, : len(pools)] = system.fractions
        capacities.append([system.capacity])
    factor = np.array(capacities) if by_load else 1 / np.array(capacities)
    return xr.Dataset(
        {name: ((*dims, *INNER)[: array.ndim], array) for name, array in values.items()},
        coords={
            "method_name": ["simulation", "mean_field"],
            "system": list(systems),
            "policy": [label for label, _, _ in policies],
            "n_servers": servers,
            swept: list(rates),
            other: (("system", swept), factor * np.array(rates)),
            "pool": np.arange(n_pools),
            "level": np.arange(levels),
            "policy_name": ("policy", [name for _, name, _ in policies]),
            "policy_parameters": (
                "policy",
                [json.dumps(ms.policy(name, **given).parameters) for _, name, given in policies],
            ),
            "pool_speed": (("system", "pool"), speeds),
            "pool_fraction": (("system", "pool"), fractions),
        },
    )


@pytest.fixture(scope="session")
def cube_of() -> Callable[..., xr.Dataset]:
    """Return the maker of invented cubes."""
    return make_cube


def make_regime_cube(
    betas: Sequence[float] = (0.5, 1.0, 2.0), n_servers: Sequence[int] = (25, 100, 400, 1600)
) -> xr.Dataset:
    """Invent results of all methods of the Halfin-Whitt regime, with the right exponents."""
    methods = ["chain", "chain_simulation", "diffusion", "fluid", "relaxation"]
    servers = np.array([*map(float, n_servers), np.inf])
    beta, root = np.array(betas)[:, None], np.sqrt(servers[:-1])
    shape, y1, y2 = (len(methods), len(betas), len(servers)), np.arange(-12, 0), np.arange(12)
    sizes = {"x1": 12, "x2": 12, "curve": 2, "path": 3, "step": 20}
    limit = 2 / (beta + beta**2)
    theta = np.exp(-beta)
    mean = limit * (1 - 1 / root + 0.3 / root**2)
    density = np.exp(-np.subtract.outer(0.3 * y2, 0.5 * y1)).T / 10
    grids = {
        "joint_density": (("x1", "x2"), density, ("chain", "diffusion")),
        "excess_cost": (("x1", "x2"), np.exp(0.1 * np.add.outer(y1, y2)) - 0.1, ("fluid",)),
        "y1_grid": (("x1",), 0.3 * y1 + 0.3, ("chain", "diffusion", "fluid")),
        "y2_grid": (("x2",), 0.3 * y2, ("chain", "diffusion", "fluid")),
        "gamma_curve": (("curve", "x1"), np.outer([1.0, 1.5], 1 - 0.1 * y1), ("fluid",)),
        "curve_level": (("curve",), np.array([1.0, 1.5]), ("fluid",)),
        "fluid_y1": (("path", "step"), np.outer([-3, -2, -1], np.linspace(1, 0.5, 20)), ("fluid",)),
        "fluid_y2": (("path", "step"), np.outer([1, 2, 3], np.linspace(1, 0, 20)), ("fluid",)),
    }
    places = {"chain": slice(-1), "chain_simulation": slice(-1)}
    scalars = {
        ("scaled_waiting_mean", "chain"): mean,
        ("scaled_waiting_mean", "chain_simulation"): 1.001 * mean,
        ("scaled_waiting_mean_half_width", "chain_simulation"): 0.01 * mean,
        ("scaled_waiting_mean", "diffusion"): limit,
        ("scaled_idle_mean", "chain"): beta + 0 * root,
        ("truncation_error", "chain"): 1e-9 + 0 * mean,
        ("q1_wasserstein", "chain"): 0.3 / root + 0 * beta,
        ("q1_kolmogorov", "chain"): 0.4 / root + 0 * beta,
        ("q2_wasserstein", "chain"): limit - mean,
        ("q2_kolmogorov", "chain"): root**-theta,
        ("q3_mean", "chain"): np.exp(-beta * root),
        ("q3_mean_error", "chain"): 0.01 * np.exp(-beta * root),
        ("y2_small_exponent", "diffusion"): theta,
        ("y2_small_constant", "diffusion"): 1 + 0 * theta,
        ("spectral_gap", "relaxation"): np.append(0.2 * (1 + 1 / root), 0.2) * beta**2,
        ("essential_spectrum_bottom", "relaxation"): beta**2 / 4 + 0 * servers[:1],
    }
    data: dict[str, np.ndarray] = {}
    for (name, method), values in scalars.items():
        array = data.setdefault(name, np.full(shape, np.nan))
        last = slice(-1, None) if method in ("diffusion",) else places.get(method, slice(None))
        array[methods.index(method), :, last] = values
    variables: dict[str, tuple] = {
        name: (("method_name", "beta", "n_servers"), array) for name, array in data.items()
    }
    for name, (dims, values, of) in grids.items():
        array = np.full((*shape, *(sizes[dim] for dim in dims)), np.nan)
        for method in of:
            array[methods.index(method), :, places.get(method, slice(-1, None))] = values
        variables[name] = (("method_name", "beta", "n_servers", *dims), array)
    coords = {"method_name": methods, "beta": list(betas), "n_servers": servers}
    return xr.Dataset(variables, coords=coords)


@pytest.fixture(scope="session")
def regime_cube_of() -> Callable[..., xr.Dataset]:
    """Return the maker of invented cubes of the Halfin-Whitt regime."""
    return make_regime_cube
