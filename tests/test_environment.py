"""environment.yml and pyproject.toml ask for the same packages in the same versions."""

import re
import tomllib
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[1]
CONDA_NAMES = {
    "matplotlib": "matplotlib-base",
    "seaborn": "seaborn-base",
    "snakemake": "snakemake-minimal",
}
"""conda packages without the parts that nothing here uses."""


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def conda() -> dict[str, str]:
    environment = YAML(typ="safe", pure=True).load(ROOT / "environment.yml")
    return dict(item.split(" ", 1) for item in environment["dependencies"])


def name_of(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9_.-]+", requirement)
    assert match is not None
    return CONDA_NAMES.get(match[0], match[0])


def versions() -> dict[str, str]:
    """Tested versions by conda name, as conda writes them."""
    constraints = project()["tool"]["uv"]["constraint-dependencies"]
    split = (constraint.split("==") for constraint in constraints)
    return {name_of(name): f"={version.removesuffix('.*')}" for name, version in split}


def required() -> list[str]:
    content = project()
    groups = content["dependency-groups"]
    everything = [
        *content["project"]["dependencies"],
        *groups["workflow"],
        *groups["cluster"],
        *groups["dev"],
    ]
    return [name_of(requirement) for requirement in everything]


def test_every_required_package_has_a_tested_version() -> None:
    assert sorted(versions()) == sorted(required())


def test_conda_gives_the_tested_versions() -> None:
    packages = conda()
    assert packages.pop("python") == project()["project"]["requires-python"]
    assert packages == versions()
