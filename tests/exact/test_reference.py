"""The exact chain against the shared tables of reference values."""

import csv
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import ClassVar

import pytest
import xarray as xr
from tests.reference import DATA, Reference, heterogeneous

import manyserver as ms
from manyserver.exact import exact
from manyserver.policies import Policy, Sampling
from manyserver.policies.base import whole_system

HETEROGENEOUS = [row for row in heterogeneous() if "exact" in row.quantity]


def homogeneous() -> list[dict[str, str]]:
    """Rows of sq_d.csv from exact chains, with their parameters as columns."""
    with (DATA / "sq_d.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if "(exact CTMC)" in row["quantity"]]
    return [row | dict(item.split("=") for item in row["parameters"].split(";")) for row in rows]


HOMOGENEOUS = homogeneous()


def test_the_tables_are_read() -> None:
    assert (len(HETEROGENEOUS), len(HOMOGENEOUS)) == (40, 32)


@dataclass(frozen=True)
class JoinIdleQueue(Policy):
    """An idle server if there is one, else any."""

    name: ClassVar[str] = "join_idle_queue"

    d: int
    replacement: bool = False

    def sampling(self, system: ms.System) -> Sampling:
        return whole_system(self.d, len(system.pools))

    def preference(self, level: int, speed: Fraction) -> Fraction:
        return Fraction(min(level, 1))


@cache
def solved(system: ms.System, policy: Policy) -> xr.Dataset:
    return exact(system, policy, tolerance=1e-13)


@pytest.mark.parametrize("row", HETEROGENEOUS, ids=str)
def test_pools_of_unequal_speed(row: Reference) -> None:
    result = solved(row.system, row.policy)
    if row.quantity.startswith("mean_sojourn"):
        assert float(result.sojourn_mean) == pytest.approx(row.value, rel=1e-12)
    else:
        pool, level = map(int, re.findall(r"\d+", row.quantity))
        tail = float(result.queue_tail[pool - 1, level])
        assert tail == pytest.approx(row.value, abs=1e-12)


@pytest.mark.parametrize(
    "row", HOMOGENEOUS, ids=[f"{r['model']} {r['N']} {r['lambda']}" for r in HOMOGENEOUS]
)
def test_equal_servers(row: dict[str, str]) -> None:
    """To all digits; rows cut off at a level are those of systems with finite buffers."""
    n = int(row["N"])
    policies = {
        "SQ(2) WITH replacement": ms.policy("sq", d=2, replacement=True),
        "SQ(2) WITHOUT replacement": ms.policy("sq", d=2),
        "JSQ": ms.policy("sq", d=n),
        "JIQ (single dispatcher": JoinIdleQueue(n),
    }
    policy = policies[row["model"].split(",")[0]]
    _, cut_off, error = row["uncertainty"].removesuffix(" relative").rpartition("truncation ~")
    idle_first = isinstance(policy, JoinIdleQueue)
    buffer = int(row["buffer truncation"]) if cut_off and not idle_first else None
    system = ms.System(float(row["lambda"]), [ms.Pool(1, 1, buffer)], n_servers=n)
    result = exact(system, policy, tolerance=0.01 * float(error))
    # That table lets full servers of JIQ block, and its estimates of the error are up to 5 times
    # too small.
    relative = 5 * float(error) if idle_first and cut_off else 0.0
    expected = pytest.approx(float(row["value"]), rel=relative, abs=6e-9)
    assert float(result.jobs_per_server) == expected


@pytest.mark.parametrize(
    ("replacement", "expected"), [(True, 1.219135), (False, 1.173572)], ids=["with", "without"]
)
def test_ten_servers(replacement: bool, expected: float) -> None:
    system = ms.System(0.7, [ms.Pool(1, 1)], n_servers=10)
    policy = ms.policy("sq", d=2, replacement=replacement)
    result = exact(system, policy, tolerance=1e-7)
    assert float(result.jobs_per_server) == pytest.approx(expected, abs=6e-7)
