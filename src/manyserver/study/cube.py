"""The cube: all results of a study side by side in one labelled dataset."""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from manyserver import methods
from manyserver.methods import METHOD, ROLE
from manyserver.schema import Purpose, Schema, Variable
from manyserver.study import models
from manyserver.study.points import Point, canonical, point_name
from manyserver.study.storage.damage import DamagedFile
from manyserver.study.storage.records import Record
from manyserver.study.storage.unit_file import read_unit
from manyserver.study.study import Study
from manyserver.study.whole_files import replacing
from manyserver.validation import ConfigError
from manyserver.version import __version__

__all__ = ["build_cube", "read_cube", "write_cube"]

NOT_ASKED, OK = "not asked for", "ok"
IMPRECISE, UNRELIABLE = "precision not met", "interval not reliable"
LONG_NAMES = {
    METHOD: "method that computed the point",
    "system": "label of the system",
    "policy": "label of the policy",
    "jobs": "label of the job sizes and the discipline",
    "pool": "place of the pool in the study",
    "level": "number of jobs at a server",
}
"""What dimensions mean; the others by their names."""
CHUNK_BYTES = 2**20
"""Values that are compressed together, and read together."""


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
        Dimensions method and the axes of the study's model, such as n_servers (inf is the limit),
        before those of each variable; what was not computed is NaN, and ``status`` says why.

    Raises
    ------
    DamagedFile
        If a file is damaged.
    ConfigError
        If no file has a point that was to be computed.
    """
    axes = {METHOD: tuple(study.config.methods_used), **study.layout.axes}
    schema = models.load(study.config.model).schema
    records = {canonical(r.parameters): r for file in unit_files for r in read_unit(file)}
    placed: list[tuple[tuple[int, ...], Record]] = []
    labels = _Labels(tuple(len(values) for values in axes.values()))
    for gap in study.layout.gaps:
        place = tuple(axes[axis].index(gap.labels[axis]) for axis in axes)
        labels.status[place], labels.reasons[place] = gap.status, gap.reason
    for point in study.layout.points:
        told: dict[str, Any] = {METHOD: point.method, **point.labels}
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
            labels.reasons[place] = str(record.notes.get("reason", ""))
            placed.append((place, record))
    used = [record for _, record in placed]
    names = {name for record in used for name in record.values}
    described = {name: schema.lookup(name) for name in sorted(names)}
    sizes = _inner_sizes(used, described)
    sizes |= {dim: size for dim, size in study.layout.inner.items() if dim in sizes}
    data = _arrays(placed, labels.ids.shape, sizes, described)
    dims = tuple(axes)
    variables: dict[str, Any] = {
        name: ((*dims, *variable.dims), data[name], _attributes(name, schema, names))
        for name, variable in described.items()
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
        self.reasons = np.full(shape, "", dtype=object)
        self.seeds = np.full(shape, -1, dtype=np.int64)

    @property
    def described(self) -> dict[str, tuple[np.ndarray, str]]:
        return {
            "point_id": (self.ids, "identity of the point's parameters"),
            "point_seed": (self.seeds, "seed of the point, -1 for none"),
            "status": (self.status, "whether the point was computed, or why not"),
            "reason": (self.reasons, "more about a point that has no value"),
        }


def _arrays(
    placed: list[tuple[tuple[int, ...], Record]],
    shape: tuple[int, ...],
    sizes: dict[str, int],
    described: dict[str, Variable],
) -> dict[str, np.ndarray]:
    data: dict[str, np.ndarray] = {}
    for place, record in placed:
        for name, value in record.values.items():
            if name not in data:
                inner = tuple(sizes[dim] for dim in described[name].dims)
                data[name] = np.full(shape + inner, np.nan)
            array = np.asarray(value, dtype=float)
            inside = tuple(slice(0, size) for size in array.shape)
            data[name][place + inside] = array
    return data


def _inner_sizes(records: list[Record], described: dict[str, Variable]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for record in records:
        for name, value in record.values.items():
            for dim, size in zip(described[name].dims, np.shape(value), strict=True):
                sizes[dim] = max(size, sizes.get(dim, 0))
    return sizes


def _attributes(name: str, schema: Schema, names: set[str]) -> dict[str, str]:
    """Describe a variable; the ancillary ones of a value, as CF calls them, say how good it is."""
    variable = schema.lookup(name)
    if variable.purpose is not Purpose.VALUE:
        return variable.attributes
    ancillary = ["status", *(error for error in schema.errors_of(name) if error in names)]
    return {**variable.attributes, "ancillary_variables": " ".join(ancillary)}


def _coordinates(study: Study, axes: dict[str, tuple], sizes: dict[str, int]) -> dict[str, Any]:
    found: dict[str, Any] = {axis: _labelled(axis, list(values)) for axis, values in axes.items()}
    if "n_servers" in axes:
        servers = [math.inf if n is None else float(n) for n in axes["n_servers"]]
        described = {"units": "1", "symbol": "N", "long_name": "number of servers"}
        found["n_servers"] = ("n_servers", servers, described)
    roles = [methods.load(name).role.value for name in axes[METHOD]]
    return {
        **found,
        ROLE: (METHOD, roles, {"long_name": "what the results of the method are"}),
        **{dim: _labelled(dim, np.arange(size)) for dim, size in sizes.items()},
        **study.layout.coordinates,
        **study.layout.derived(),
    }


def _labelled(dim: str, values: Any) -> tuple[str, Any, dict[str, str]]:
    return dim, values, {"long_name": LONG_NAMES.get(dim, dim.replace("_", " "))}


def _provenance(study: Study, records: list[Record]) -> dict[str, str]:
    libraries: dict[str, set[str]] = {}
    for record in records:
        for name, number in record.versions.items():
            libraries.setdefault(name, set()).add(number)
    titles = {canonical(point.parameters): _title(point) for point in study.points}
    code: dict[str, set[str]] = {}
    for record in records:
        code.setdefault(titles[canonical(record.parameters)], set()).add(record.code)
    comment = " ".join(study.config.description.split())
    # What figures and fits make of the cube is no part of it.
    told = study.config.model_dump_json(
        exclude_unset=True, exclude={"allow_failures", "figures", "fits", "tables"}
    )
    return {
        "Conventions": "CF-1.11",
        "title": study.config.title,
        **({"comment": comment} if comment else {}),
        "source": f"manyserver {__version__}",
        "history": f"assembled by manyserver {__version__} from {len(records)} points",
        "study": study.name,
        "model": study.config.model,
        "study_config": canonical(json.loads(told)),
        "code_fingerprints": _sorted(code),
        "library_versions": _sorted(libraries),
        "time_unit": "mean job size divided by speed 1",
    }


def _title(point: Point) -> str:
    return f"{point.method} {point.subject.title}".strip()


def _sorted(found: dict[str, set[str]]) -> str:
    return canonical({name: sorted(values) for name, values in found.items()})


def write_cube(cube: xr.Dataset, path: Path) -> None:
    """Write a cube as compressed NetCDF-4, moved into place when it is whole."""
    encoding: dict[Any, dict[str, Any]] = {
        name: {
            "zlib": True,
            "complevel": 4,
            "shuffle": True,
            "chunksizes": _chunks(variable.shape, variable.dtype.itemsize),
        }
        for name, variable in cube.data_vars.items()
        if variable.dtype.kind in "fi" and variable.size and variable.ndim
    }
    # A coordinate has no missing values (CF 2.5.1).
    encoding |= {
        name: {"_FillValue": None} for name in cube.coords if cube[name].dtype.kind in "fi"
    }
    with replacing(path) as temporary:
        cube.to_netcdf(temporary, engine="netcdf4", format="NETCDF4", encoding=encoding)


def read_cube(path: Path) -> xr.Dataset:
    """Read all of a cube.

    Raises
    ------
    DamagedFile
        If that is impossible. A file ``cube.nc`` is removed, so that the next run builds it again.
    """
    try:
        with xr.open_dataset(path, engine="netcdf4") as cube:
            return cube.load()
    except (OSError, RuntimeError, ValueError) as error:
        if isinstance(error, OSError) and (error.errno or 0) > 0:
            raise  # It is the system that says so, not the library that reads the file.
        if path.name != "cube.nc":
            raise DamagedFile(f"{path}: cannot be read as a cube ({error})") from error
        path.unlink()
        raise DamagedFile(f"{path}: is damaged, and was removed; run again ({error})") from error


def _chunks(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Divide an array along its first dimensions into parts that are read at once.

    Examples
    --------
    >>> _chunks((2, 5, 10, 200, 2, 30), 8)
    (1, 1, 10, 200, 2, 30)
    """
    chunks = list(shape)
    for i in range(len(shape)):
        chunks[i] = max(1, min(shape[i], CHUNK_BYTES // (itemsize * math.prod(shape[i + 1 :]))))
    return tuple(chunks)
