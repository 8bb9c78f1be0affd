"""environment.yml and pyproject.toml ask for the same packages, in versions that were tested."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONDA_NAMES = {
    "matplotlib": "matplotlib-base",
    "seaborn": "seaborn-base",
    "snakemake": "snakemake-minimal",
}
"""conda packages without the parts that nothing here uses."""


def required() -> dict[str, Requirement]:
    """What a run and the tests need, by name; an extra of this project stands for its content."""
    groups, project = PROJECT["dependency-groups"], PROJECT["project"]
    asked = [*project["dependencies"], *groups["workflow"], *groups["cluster"], *groups["dev"]]
    found: dict[str, Requirement] = {}
    for requirement in map(Requirement, asked):
        if requirement.name == project["name"]:
            inner = [project["optional-dependencies"][extra] for extra in requirement.extras]
            found |= {r.name: r for items in inner for r in map(Requirement, items)}
        else:
            found[requirement.name] = requirement
    return found


def last_versions() -> dict[str, str]:
    """Versions with which the tests ran last, by name."""
    split = (one.split("==") for one in PROJECT["tool"]["uv"]["constraint-dependencies"])
    return {name: version.removesuffix(".*") for name, version in split}


def test_every_required_package_has_a_tested_version() -> None:
    assert sorted(last_versions()) == sorted(required())


@pytest.mark.parametrize("name", sorted(required()))
def test_every_package_has_a_lower_bound_that_allows_the_tested_version(name: str) -> None:
    (bound,) = required()[name].specifier
    assert bound.operator == ">="
    # The last number of a tested version is left out, and may be as large as it needs.
    assert required()[name].specifier.contains(f"{last_versions()[name]}.999")


def test_conda_asks_for_the_same_lower_bounds() -> None:
    environment = YAML(typ="safe", pure=True).load(ROOT / "environment.yml")
    asked = {"python": PROJECT["project"]["requires-python"]} | {
        CONDA_NAMES.get(name, name): str(one.specifier) for name, one in required().items()
    }
    assert dict(item.split(" ", 1) for item in environment["dependencies"]) == asked


def test_users_of_pip_get_the_workflow_as_an_extra() -> None:
    assert PROJECT["dependency-groups"]["workflow"] == ["manyserver[workflow]"]
    assert "snakemake" in required()


def test_the_workflow_refuses_an_older_snakemake() -> None:
    snakefile = (ROOT / "workflow" / "Snakefile").read_text()
    (asked,) = re.findall(r'^min_version\("(.*)"\)$', snakefile, re.MULTILINE)
    assert f">={asked}" == str(required()["snakemake"].specifier)
