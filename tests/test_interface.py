"""What the package offers by name, and what its results say of themselves."""

import builtins
import inspect
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import manyserver as ms
from manyserver import policies
from manyserver.methods.simulation import Options
from manyserver.origin import ORIGIN, VERSION
from manyserver.sizes import names as size_names
from manyserver.sizes import size_class

DOCS = Path(__file__).parents[1] / "docs"
API = runpy.run_path(str(DOCS / "conf.py"))["with_plugins"]((DOCS / "api.md").read_text())
LISTED = {
    path.removeprefix("manyserver.") if path.count(".") == 1 else path
    for path in re.findall(r"^\.\. auto(?:function|class|exception):: (\S+)$", API, re.MULTILINE)
}
POOLS = [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3", buffer=9)]
LIMIT = ms.System(0.5, POOLS)
SYSTEM = ms.System(0.5, POOLS, n_servers=4)
POLICY = ms.policy("scheme1", d=[1, 1])
PULL = ms.policy("pull", routers=2)
FCFS: dict[str, Any] = {"sizes": ms.size_law("erlang", shape=2), "discipline": "fcfs"}

RESULTS: dict[str, Callable[[], xr.Dataset]] = {
    "simulate": lambda: ms.simulate(SYSTEM, POLICY, seed=7, horizon=50),
    "simulate jobs": lambda: ms.simulate(SYSTEM, POLICY, seed=7, horizon=50, **FCFS),
    "compare": lambda: ms.compare(SYSTEM, [POLICY, PULL], seed=7, horizon=50),
    "exact": lambda: ms.exact(SYSTEM, POLICY, tolerance=1e-6),
    "fixed_point": lambda: ms.fixed_point(LIMIT, POLICY),
    "fixed_point jobs": lambda: ms.fixed_point(LIMIT, POLICY, **FCFS),
    "pull_fixed_point": lambda: ms.pull_fixed_point(LIMIT, PULL, [0.5, 0.5]),
    "pull_asymptotics": lambda: ms.pull_asymptotics(SYSTEM, PULL),
    "refine": lambda: ms.refine(SYSTEM, POLICY),
    "mean_field": lambda: ms.mean_field(LIMIT, POLICY, [0, 1], start=LIMIT),
    "sojourn_law": lambda: ms.sojourn_law(LIMIT, POLICY, discipline="ps"),
}


def public() -> dict[str, Any]:
    return {name: getattr(ms, name) for name in ms.__all__ if not name.startswith("__")}


def test_dir_lists_the_public_names_alone() -> None:
    assert dir(ms) == sorted(ms.__all__)
    assert dir(ms.halfin_whitt) == sorted(ms.halfin_whitt.__all__)
    assert "halfin_whitt" in dir(ms)
    assert re.fullmatch(r"\d+\.\d+.*", ms.__version__)


def test_the_diffusion_limit_is_loaded_when_it_is_used() -> None:
    code = (
        "import sys, manyserver as ms; name = 'manyserver.diffusion.halfin_whitt'; "
        "assert name not in sys.modules; ms.halfin_whitt.stationary; assert name in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_reference_lists_all_that_is_public() -> None:
    classes = {*map(policies.policy_class, policies.names()), *map(size_class, size_names())}
    inner = [getattr(ms.halfin_whitt, name) for name in ms.halfin_whitt.__all__]
    things = [thing for thing in public().values() if not inspect.ismodule(thing)]
    assert {thing.__name__ for thing in (*things, *inner)} - LISTED == set()
    assert {f"{chosen.__module__}.{chosen.__name__}" for chosen in classes} - LISTED == set()


def test_a_simulation_has_the_same_defaults_in_python_and_in_studies() -> None:
    asked = inspect.signature(ms.simulate).parameters
    compared = inspect.signature(ms.compare).parameters
    for name, field in Options.model_fields.items():
        assert field.default == asked[name].default
        assert name not in compared or field.default == compared[name].default


class Mine(ms.policies.SQ):  # type: ignore[misc]
    """A policy that no registry knows."""

    name = "mine"


class Sizes(ms.sizes.Erlang):  # type: ignore[misc]
    """A law that no registry knows."""

    name = "my_sizes"


USES: dict[str, Callable[[ms.Policy, ms.SizeLaw], xr.Dataset]] = {
    "simulate": lambda mine, law: ms.simulate(SYSTEM, mine, seed=7, horizon=50),
    "simulate jobs": lambda mine, law: ms.simulate(
        SYSTEM, mine, sizes=law, discipline="fcfs", seed=7, horizon=50
    ),
    "compare": lambda mine, law: ms.compare(SYSTEM, [mine, PULL], sizes=law, seed=7, horizon=50),
    "exact": lambda mine, law: ms.exact(SYSTEM, mine, tolerance=1e-6),
    "fixed_point": lambda mine, law: ms.fixed_point(LIMIT, mine),
    "fixed_point jobs": lambda mine, law: ms.fixed_point(LIMIT, mine, sizes=law),
    "refine": lambda mine, law: ms.refine(SYSTEM, mine),
    "mean_field": lambda mine, law: ms.mean_field(LIMIT, mine, [0, 1], start=LIMIT),
    "sojourn_law": lambda mine, law: ms.sojourn_law(LIMIT, mine, discipline="ps"),
}


@pytest.mark.parametrize("name", USES)
def test_a_policy_and_a_law_of_your_own_work_at_once(name: str) -> None:
    """The same values as those that they derive from: it is the same code."""
    mine = USES[name](Mine(d=2), Sizes(shape=2))
    expected = USES[name](ms.policy("sq", d=2), ms.size_law("erlang", shape=2))
    assert "Mine(d=2" in mine.attrs.get("policy", str(mine.coords))
    labels = [name for name in ("policy",) if name in mine.coords]
    xr.testing.assert_equal(mine.drop_vars(labels), expected.drop_vars(labels))


def test_errors_that_the_documentation_names_can_be_caught_by_these_names() -> None:
    inner = [getattr(ms.halfin_whitt, name) for name in ms.halfin_whitt.__all__]
    named: set[str] = set()
    for thing in (*public().values(), *inner):
        told = re.search(r"^Raises\n-+\n((?:.|\n)*?)(?:\n\n|\Z)", inspect.getdoc(thing) or "", re.M)
        for line in told[1].splitlines() if told else ():
            if not line.startswith(" "):
                named.update(line.split(", "))
    assert {"CriticalLoad", "NotSmooth", "TooManyStates", "UnstableSystem"} <= named
    assert {name for name in named if not hasattr(builtins, name)} - set(ms.__all__) == set()


def test_measured_sizes_are_told_by_their_digest() -> None:
    laws = [ms.size_law("empirical", values=values, mean=1) for values in ([1.0, 2.0], [1.0, 3.0])]
    results = [ms.fixed_point(LIMIT, POLICY, sizes=law) for law in laws]
    told = {result.attrs["sizes"].split()[-1] for result in results}
    assert len(told) == 2
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in told)


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_says_what_it_was_computed_for(name: str, tmp_path: Path) -> None:
    RESULTS[name]().to_netcdf(tmp_path / "result.nc")
    with xr.open_dataset(tmp_path / "result.nc") as opened:
        told = opened.attrs
    assert eval(told["system"], vars(ms)) in (SYSTEM, LIMIT)
    assert ("Scheme1(d=(1, 1)" in told["policy"]) or ("Pull(routers=2)" in told["policy"])
    assert told[VERSION] == ms.__version__
    assert told["method"]
    assert all(isinstance(told[key], str) for key in ORIGIN if key in told)
    assert (told["sizes"] == repr(FCFS["sizes"])) == ("jobs" in name)
    random = name.split()[0] in ("simulate", "compare")
    assert told.get("seed") == ("7" if random else None)
    assert ("horizon=50" in told.get("options", "")) == random
    assert told.get("discipline") == {"sojourn_law": "ps"}.get(
        name, "fcfs" if "jobs" in name else None
    )
