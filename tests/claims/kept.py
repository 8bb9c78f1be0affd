"""The cubes and fits that the tests of claims read: real ones, cut to what claims look at.

``python -m tests.claims.kept results`` cuts those of a folder of results, in which all studies are
built, and writes them to ``tests/data/claims``.
"""

import sys
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from manyserver import claims
from manyserver.claims.results import ROW_LABELS, Number, Results, read_results
from manyserver.methods import Role

FOLDER = Path(__file__).parents[1] / "data" / "claims"
ALWAYS = ("status", "interval_reliable", "truncation_error", "residual")
BESIDE = {
    "tail_decay": {"queue_tail", "joining_rate"},
    "fluid_portrait": {"excess_level", "curve_level", "y2_grid"},
}
"""Variables that claims read of a cube without asking for numbers."""
EVERY = {"x1": slice(0, None, 8), "x2": slice(0, None, 8), "step": slice(7, None, 8)}
FITTED = (
    "fig3_finite_size",
    "finite_size",
    "halfin_whitt",
    "insensitivity",
    "insensitivity_1000",
    "propagation_of_chaos",
    "pull_routers",
    "tail_decay",
)
"""Studies whose fits are read."""
LEVELS = {"tail_decay": 32}


def read_kept() -> Results:
    return read_results(FOLDER, claims.studies())


class Noticed(Results):
    """Results that notice which variables are read."""

    def __init__(self, results: Results):
        super().__init__(results.cubes, results.fits)
        self.__dict__["variables"] = {}

    def read(
        self, study: str, variable: str, role: Role = Role.LIMIT, **labels: Any
    ) -> list[Number]:
        self.__dict__["variables"].setdefault(study, set()).add(variable)
        return super().read(study, variable, role, **labels)


def cut(cube: xr.Dataset, study: str, variables: set[str]) -> xr.Dataset:
    read = sorted(variables | BESIDE.get(study, set()))
    errors = [f"{name}{suffix}" for name in read for suffix in ("_half_width", "_error")]
    wanted = [name for name in (*read, *errors, *ALWAYS * bool(read)) if name in cube]
    found = cube.drop_vars([name for name in cube.data_vars if name not in wanted])
    found = found.isel({dim: part for dim, part in EVERY.items() if dim in cube.dims})
    if "level" in found.dims:
        found = found.isel(level=slice(0, LEVELS.get(study, 2)))
    narrow = {n: found[n].astype("float32") for n in wanted if n.endswith("_half_width")}
    found = found.assign(narrow)
    for name in found.data_vars:
        found[name].attrs = {}
    return found.assign_attrs({name: cube.attrs[name] for name in ("study", "source")})


def cut_fits(table: pd.DataFrame) -> pd.DataFrame:
    numbers = ["fit", "estimate", "standard_error", "expected", "note"]
    return table[[name for name in (*ROW_LABELS, *numbers) if name in table]]


def write(results: Results) -> None:
    noticed = Noticed(results)
    claims.findings(noticed)
    for study in claims.studies():
        folder = FOLDER / study
        folder.mkdir(parents=True, exist_ok=True)
        cube = cut(results.cube(study), study, noticed.__dict__["variables"].get(study, set()))
        large = [n for n, v in cube.data_vars.items() if v.dtype.kind == "f" and v.size > 200]
        packed = {"zlib": True, "complevel": 9, "shuffle": True}
        cube.to_netcdf(folder / "cube.nc", encoding=dict.fromkeys(large, packed))
        if study in FITTED and study in results.fits:
            cut_fits(results.fits[study]).to_csv(folder / "fits.csv", index=False)


if __name__ == "__main__":
    write(read_results(Path(sys.argv[1]), claims.studies()))
