"""A plug-in is one file, here or in a package of its own, and nothing else is edited."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest
import xarray as xr

from tests import examples

if TYPE_CHECKING:
    from tests.workflow.conftest import Project

CONFORM = (
    "tests/policies/test_policies.py",
    "tests/sizes/test_sizes.py",
    "tests/study/test_documentation.py",
    "tests/study/test_schema.py",
    "tests/study/test_fits.py",
    "tests/test_registry.py",
    "src/manyserver/methods",
    "src/manyserver/fits",
)
"""What walks over all plug-ins."""


def build(project: "Project") -> None:
    """Run studies that use all of the examples, and look at what they gave."""
    project.study.write_text(examples.STUDY)
    project.study.with_name("jobs.yaml").write_text(examples.JOBS)
    project.snakemake()
    results = project.folder / "results"
    with xr.open_dataset(results / "tiny" / "cube.nc") as cube:
        assert cube.method.values.tolist() == ["mean_field", "rough_simulation"]
        assert cube.method_role.values.tolist() == ["limit", "simulation"]
        assert cube.policy_name.values.tolist() == ["fast_first"]
        assert (cube.status != "not asked for").sum() == 4
        assert cube.sojourn_mean.notnull().sum() == 4
    fits = pd.read_csv(results / "tiny" / "fits.csv")
    assert set(fits["fit"]) == {"waiting_power", "finite_size"}
    assert set(fits["method"]) == {"rough_simulation"}
    with xr.open_dataset(results / "jobs" / "cube.nc") as cube:
        assert cube.size_law.values.tolist() == ["uniform"]
        assert cube.sojourn_mean.notnull().all()


def test_a_file_in_the_package(new_project: Callable[[], "Project"]) -> None:
    project = new_project()
    project.copy_source()
    for folder in examples.FOLDERS:
        name, text = examples.source(folder)
        (project.folder / "src" / "manyserver" / folder / f"{name}.py").write_text(text)
    build(project)


def test_a_file_conforms(
    new_project: Callable[[], "Project"], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its parameters for the tests, and the tables that a command writes."""
    import shutil

    project = new_project()
    project.copy_source()
    root = Path(__file__).parents[2]
    for name in ("tests", "config", "docs"):
        shutil.copytree(root / name, project.folder / name, dirs_exist_ok=True)
    shutil.copy(root / "pyproject.toml", project.folder)
    for folder in examples.FOLDERS:
        name, text = examples.source(folder)
        (project.folder / "src" / "manyserver" / folder / f"{name}.py").write_text(text)
    project.edit('    "jsq": [', '    "fast_first": [{"d": 3}],\n    "jsq": [', "tests/registry.py")
    project.edit('    "erlang"', '    "uniform": [{}],\n    "erlang"', "tests/sizes/laws.py")
    project.study.write_text(examples.STUDY)
    project.ask("schema")
    project.study.unlink()
    said = project.run("pytest", "-q", "-x", "-p", "no:cacheprovider", *CONFORM)
    assert "passed" in said and "failed" not in said


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder in which a package with all of the examples is installed, as pip does it."""
    name, folder = "my_policies", tmp_path / "installed"
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").touch()
    for kind in examples.FOLDERS:
        module, text = examples.source(kind)
        (folder / name / f"{module}.py").write_text(text)
    return folder
