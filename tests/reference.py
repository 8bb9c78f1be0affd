"""The reference values in tests/data, as systems and policies."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import manyserver as ms
from manyserver.policies import Policy

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Reference:
    """One row: what is computed, for which system and policy, and its value."""

    quantity: str
    system: ms.System
    policy: Policy
    value: float
    source: str

    def __str__(self) -> str:
        """Short name of the row, for the report of a test."""
        return f"{self.quantity}-{self.policy}-{self.system.arrival_rate}-{self.system.n_servers}"


def _rows(name: str) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    with (DATA / name).open() as file:
        for row in csv.DictReader(file):
            items = [item.split("=") for item in row["parameters"].split(";") if "=" in item]
            yield row, dict(items)


def _heterogeneous_policy(name: str, d: list[int], replacement: bool) -> Policy | None:
    policies: dict[str, tuple[str, dict[str, object]]] = {
        "scheme1": ("scheme1", {"d": d}),
        "scheme2(C/q before arrival; q=0 infinite)": ("scheme2", {"d": d}),
        "scheme2-alt SED(d) (C/(q+1))": ("sed", {"d": d}),
        "state-independent optimal": ("optimal_split", {}),
        "state-independent p~gamma*C": ("naive_split", {}),
        "hybrid SQ(2) optimal p": ("hybrid_sq", {"d": 2}),
        "hybrid SQ(2) p~gamma*C": ("hybrid_sq", {"d": 2, "split": "naive"}),
        "SQ(2) whole pool ties unif": ("sq", {"d": 2}),
        "SQ(2) whole pool ties fast": ("sq", {"d": 2, "ties": "fastest"}),
        "SQ(d) homogeneous": ("sq", {"d": d[0]}),
    }
    if name not in policies:
        return None
    kind, parameters = policies[name]
    return ms.policy(kind, **parameters, replacement=replacement)


def heterogeneous() -> Iterator[Reference]:
    """Rows of heterogeneous.csv about policies that this package knows."""
    for row, given in _rows("heterogeneous.csv"):
        d = [int(value) for value in given.get("d", "2").split("|")]
        with_replacement = given.get("sampling") == "with_replacement"
        policy = _heterogeneous_policy(row["policy"], d, with_replacement)
        if policy is None:
            continue
        speeds = given["C"].split("|")
        n_servers = None
        if "counts" in given:
            counts = [int(count) for count in given["counts"].split("|")]
            n_servers = sum(counts)
            fractions = [f"{count}/{n_servers}" for count in counts]
        else:
            fractions = given["gamma"].split("|")
        quantity, _, size = row["quantity"].partition("_N")
        if size.isdigit():
            n_servers = int(size)
        elif size:
            quantity = row["quantity"]
        pools = [ms.Pool(*pair) for pair in zip(fractions, speeds, strict=True)]
        system = ms.System(float(given["lambda"]), pools, n_servers)
        yield Reference(quantity, system, policy, float(row["value"]), row["uncertainty"])


def sq() -> Iterator[Reference]:
    """Rows of sq_d.csv about SQ(d) on equal servers."""
    for row, given in _rows("sq_d.csv"):
        if "SQ(" not in row["model"]:
            continue
        d = given.get("d", "2")
        # The published tables of Gast and Van Houdt draw with replacement.
        replacement = "WITH replacement" in row["model"] or "published" in row["model"]
        policy = ms.policy("sq", d=int(d), replacement=replacement)
        n_servers = int(given["N"]) if "N" in given else None
        system = ms.System(float(given["lambda"]), [ms.Pool(1, 1)], n_servers)
        yield Reference(row["quantity"], system, policy, float(row["value"]), row["uncertainty"])
