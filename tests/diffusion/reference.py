"""Rows of the table of reference values for the Halfin-Whitt regime."""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import xarray as xr

import manyserver as ms

DATA = Path(__file__).parents[1] / "data" / "halfin_whitt.csv"


@dataclass(frozen=True)
class Row:
    """A quantity, at a beta and perhaps an n, its value and the error that the table states."""

    quantity: str
    beta: float
    n: int
    value: float
    error: float

    def __str__(self) -> str:
        """Short name of the row, for the report of a test."""
        return f"{self.quantity}-{self.beta:g}-{self.n}"


def rows(*quantities: str, sizes: tuple[int, ...] = ()) -> list[Row]:
    """Return the rows of which the quantity starts with one of those given, for some n or all."""
    found = []
    with DATA.open() as file:
        for row in csv.DictReader(file):
            given = dict(item.split("=") for item in row["parameters"].split(";") if "=" in item)
            n = int(given.get("n", 0))
            if sizes and n not in sizes:
                continue
            if "beta" not in given or not row["quantity"].startswith(quantities):
                continue
            text = row["error_estimate"]
            value = float(row["value"])
            relative = text.startswith("rel ")
            error = float(text.removeprefix("rel ").split()[0]) * (value if relative else 1.0)
            found.append(Row(row["quantity"], float(given["beta"]), n, value, error))
    assert found
    return found


@cache
def chain(beta: float, n: int) -> xr.Dataset:
    """Law of the queues, computed once."""
    return ms.halfin_whitt.chain(beta, n)


@cache
def stationary(beta: float) -> xr.Dataset:
    """Law of the diffusion, computed once."""
    return ms.halfin_whitt.stationary(beta)
