"""The cube: all results of a study side by side in one labelled dataset."""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from manyserver.model import System
from manyserver.study.compute import point_name, read_unit
from manyserver.study.points import canonical
from manyserver.study.records import Record
from manyserver.study.store import replacing
from manyserver.study.sweep import Study
from manyserver.study.validation import ConfigError
from manyserver.variables import HALF_WIDTH, lookup
from manyserver.version import __version__

__all__ = ["build_cube", "write_cube"]

NOT_ASKED, OK = "not asked for", "ok"
IMPRECISE, UNRELIABLE = "precision not met", "interval not reliable"


def build_cube(study: Study, unit_files: Iterable[Path]) -> xr.Dataset:
    """Assemble the cube of a study from the files of its units.

    Parameters
    ----------
    study : Study
        Gives the axes and labels.
    unit_files : iterable of pathlib.Path
        The files of all its units.

    Returns
    -------
    xarray.Dataset
        Dimensions method, system, policy, n_servers (inf is the limit) and arrival_rate or load,
        before those of each variable; what was not computed is NaN, and ``status`` says why.

    Raises
    ------
    ValueError
        If a file is damaged or, as a ConfigError, no file has a point that was to be computed.
    """
    axes = _axes(study)
    records = {canonical(r.parameters): r for file in unit_files for r in read_unit(file)}
    placed: list[tuple[tuple[int, ...], Record]] = []
    labels = _Labels(tuple(len(values) for values in axes.values()))
    for point in study.points:
        told: dict[str, Any] = {"method": point.method, **point.labels}
        place = tuple(axes[axis].index(told[axis]) for axis in axes)
        labels.ids[place], labels.status[place] = point.id, point.left_out
        labels.seeds[place] = -1 if point.seed is None else point.seed
        if not point.left_out:
            record = records.get(canonical(point.parameters))
            if record is None:
                raise ConfigError(
                    [
                        f"{study.name}: {point_name(point)}: is in none of the unit files; "
                        "if the study was edited while it ran, run it again"
                    ]
                )
            labels.status[place] = _status(record)
            placed.append((place, record))
    used = [record for _, record in placed]
    sizes = _inner_sizes(used)
    data = _arrays(placed, labels.ids.shape, sizes)
    dims = tuple(axes)
    variables: dict[str, Any] = {
        name: ((*dims, *lookup(name).dims), data[name], _described(name)) for name in sorted(data)
    }
    for name, (array, text) in labels.described.items():
        variables[name] = (dims, array, {"long_name": text})
    coords = _coordinates(study, axes, sizes)
    return xr.Dataset(variables, coords=coords, attrs=_provenance(study, used))


def _status(record: Record) -> str:
    if "status" in record.notes:
        return str(record.notes["status"])
    if not record.values.get("precision_met", True):
        return IMPRECISE
    return OK if record.values.get("interval_reliable", True) else UNRELIABLE


class _Labels:
    """What is known of every place in the cube besides its values."""

    def __init__(self, shape: tuple[int, ...]):
        self.ids = np.full(shape, "", dtype=object)
        self.status = np.full(shape, NOT_ASKED, dtype=object)
        self.seeds = np.full(shape, -1, dtype=np.int64)

    @property
    def described(self) -> dict[str, tuple[np.ndarray, str]]:
        return {
            "point_id": (self.ids, "identity of the point's parameters"),
            "point_seed": (self.seeds, "seed of the point, -1 for none"),
            "status": (self.status, "whether the point was computed, or why not"),
        }


def _arrays(
    placed: list[tuple[tuple[int, ...], Record]], shape: tuple[int, ...], sizes: dict[str, int]
) -> dict[str, np.ndarray]:
    data: dict[str, np.ndarray] = {}
    for place, record in placed:
        for name, value in record.values.items():
            if name not in data:
                inner = tuple(sizes[dim] for dim in lookup(name).dims)
                data[name] = np.full(shape + inner, np.nan)
            array = np.asarray(value, dtype=float)
            inside = tuple(slice(0, size) for size in array.shape)
            data[name][place + inside] = array
    return data


def _axes(study: Study) -> dict[str, tuple]:
    sweep = study.config.sweep
    return {
        "method": tuple(study.config.methods_used),
        "system": tuple(study.config.systems),
        "policy": tuple(study.policies),
        "n_servers": sweep.n_servers,
        sweep.rate_name: tuple(float(rate) for rate in sweep.rates),
    }


def _inner_sizes(records: list[Record]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for record in records:
        for name, value in record.values.items():
            for dim, size in zip(lookup(name).dims, np.shape(value), strict=True):
                sizes[dim] = max(size, sizes.get(dim, 0))
    return sizes


def _described(name: str) -> dict[str, str]:
    variable = lookup(name)
    described = {
        "units": variable.units,
        "long_name": variable.long_name,
        "symbol": variable.symbol,
        "ancillary_variables": "" if name.endswith(HALF_WIDTH) else "status",
    }
    return {key: value for key, value in described.items() if value}


def _coordinates(study: Study, axes: dict[str, tuple], sizes: dict[str, int]) -> dict[str, Any]:
    policies = study.policies.values()
    servers = [math.inf if n is None else float(n) for n in axes["n_servers"]]
    described = {"units": "1", "symbol": "N", "long_name": "number of servers"}
    by_label = {point.labels["system"]: point.system for point in study.points}
    systems = [by_label[label] for label in axes["system"]]
    return {
        **{axis: list(axes[axis]) for axis in ("method", "system", "policy")},
        "n_servers": ("n_servers", servers, described),
        **{dim: np.arange(size) for dim, size in sizes.items()},
        "policy_name": ("policy", [policy.name for policy in policies]),
        "policy_parameters": ("policy", [canonical(policy.parameters) for policy in policies]),
        **_rates(study, systems),
        **_pools(systems),
    }


def _rates(study: Study, systems: list[System]) -> dict[str, Any]:
    name = study.config.sweep.rate_name
    values = np.array([float(rate) for rate in study.config.sweep.rates])
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
    speeds, fractions = np.full(shape, np.nan), np.full(shape, np.nan)
    for i, system in enumerate(systems):
        speeds[i, : len(system.pools)] = system.speeds
        fractions[i, : len(system.pools)] = system.fractions
    speed = {"units": "1", "symbol": "C_j", "long_name": "speed of a server of the pool"}
    fraction = {"units": "1", "symbol": r"\gamma_j", "long_name": "fraction of the servers"}
    return {
        "pool_speed": (("system", "pool"), speeds, speed),
        "pool_fraction": (("system", "pool"), fractions, fraction),
    }


def _provenance(study: Study, records: list[Record]) -> dict[str, str]:
    libraries: dict[str, set[str]] = {}
    for record in records:
        for name, number in record.versions.items():
            libraries.setdefault(name, set()).add(number)
    code: dict[str, set[str]] = {}
    for record in records:
        name = f"{record.parameters['method']} {record.parameters['policy']['name']}"
        code.setdefault(name, set()).add(record.code)
    return {
        "Conventions": "CF-1.11",
        "title": study.config.title,
        "comment": " ".join(study.config.description.split()),
        "source": f"manyserver {__version__}",
        "study": study.name,
        "study_config": canonical(json.loads(study.config.model_dump_json(exclude_unset=True))),
        "code_fingerprints": _sorted(code),
        "library_versions": _sorted(libraries),
        "time_unit": "mean job size divided by speed 1",
    }


def _sorted(found: dict[str, set[str]]) -> str:
    return canonical({name: sorted(values) for name, values in found.items()})


def write_cube(cube: xr.Dataset, path: Path) -> None:
    """Write a cube as compressed NetCDF-4, moved into place when it is whole."""
    encoding = {
        name: {"zlib": True, "complevel": 4, "shuffle": True}
        for name, variable in cube.data_vars.items()
        if variable.dtype.kind in "fi" and variable.size
    }
    with replacing(path) as temporary:
        cube.to_netcdf(temporary, engine="netcdf4", format="NETCDF4", encoding=encoding)
