"""A plug-in is one file, here or in a package of its own, and nothing else is edited."""

import ensurepip
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import xarray as xr
from tests import examples

if TYPE_CHECKING:
    from tests.workflow.conftest import Project

ROOT = Path(__file__).parents[2]
CONFORM = (
    "tests/figures/test_style.py",
    "tests/policies/test_policies.py",
    "tests/sizes/test_sizes.py",
    "tests/study/test_documentation.py",
    "tests/study/test_schema.py",
    "tests/study/test_fits.py",
    "tests/test_registry.py",
    "src/manyserver/methods",
    "src/manyserver/fits",
    "src/manyserver/figures/__init__.py",
)
"""What walks over all plug-ins."""
NUMERICS = ("tests/joining/test_law.py", "tests/exact/test_exact.py", "tests/sizes/test_sizes.py")
"""What walks over all policies and laws, and takes longer for all of them."""


def build(project: "Project") -> None:
    """Run studies that use all of the examples, and look at what they gave."""
    project.study.write_text(examples.STUDY)
    project.study.with_name("jobs.yaml").write_text(examples.JOBS)
    said = project.snakemake()
    # Its method has a rule of its own.
    assert re.search(r"^rough_chain +3$", said, re.MULTILINE)
    results = project.folder / "results"
    with xr.open_dataset(results / "tiny" / "cube.nc") as cube:
        assert cube.method_name.values.tolist() == ["mean_field", "rough_chain"]
        assert cube.method_role.values.tolist() == ["limit", "exact"]
        assert cube.policy_name.values.tolist() == ["fast_first"]
        assert (cube.status != "not asked for").sum() == 4
        assert cube.sojourn_mean.notnull().sum() == 4
    fits = pd.read_csv(results / "tiny" / "fits.csv")
    assert set(fits["fit"]) == {"waiting_power", "finite_size"}
    assert set(fits["method"]) == {"rough_chain"}
    assert (results / "tiny" / "figures" / "waiting_curve.png").stat().st_size > 10_000
    claims = pd.read_csv(results / "claims.csv").set_index("name")
    assert claims.loc["shorter_under_jsq", "note"] == "the study how_much_information was not built"
    with xr.open_dataset(results / "jobs" / "cube.nc") as cube:
        assert cube.size_law.values.tolist() == ["uniform"]
        assert cube.sojourn_mean.notnull().all()


def add_files(project: "Project") -> None:
    project.copy_source()
    for folder in examples.FOLDERS:
        name, text = examples.source(folder)
        (project.folder / "src" / "manyserver" / folder / f"{name}.py").write_text(text)


def test_a_file_in_the_package(new_project: Callable[[], "Project"]) -> None:
    project = new_project()
    add_files(project)
    build(project)


def test_a_file_conforms(new_project: Callable[[], "Project"]) -> None:
    """With its parameters for the tests, and the tables that a command writes."""
    project = new_project()
    add_files(project)
    for name in ("tests", "config", "docs"):
        shutil.copytree(ROOT / name, project.folder / name, dirs_exist_ok=True)
    shutil.copy(ROOT / "pyproject.toml", project.folder)
    project.edit('    "jsq": [', '    "fast_first": [{"d": 3}],\n    "jsq": [', "tests/registry.py")
    project.edit('    "erlang"', '    "uniform": [{}],\n    "erlang"', "tests/sizes/laws.py")
    project.study.unlink()
    project.ask("schema")
    for tests in (CONFORM, ("-k", "FastFirst or Uniform", *NUMERICS)):
        said = project.run("pytest", "-q", "-x", "-p", "no:cacheprovider", *tests)
        assert re.search(r"^\d+ passed", said, re.MULTILINE)


def wheel(folder: Path) -> Path:
    """Build the package of the documentation."""
    told = tomllib.loads(examples.PYPROJECT)["project"]
    name, version = told["name"].replace("-", "_"), told["version"]
    points = "".join(
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
        for group, entries in told["entry-points"].items()
    )
    about = f"{name}-{version}.dist-info"
    files = {
        f"{name}/__init__.py": "",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {told['name']}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": points,
        f"{about}/RECORD": "",
        **{f"{name}/{module}.py": text for module, text in map(examples.source, examples.FOLDERS)},
    }
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
    return path


def pip() -> str:
    """Where to run pip from: Python has a copy, which a virtual environment may lack."""
    return str(next(Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl")) / "pip")


def test_a_package_of_its_own(new_project: Callable[[], "Project"], tmp_path: Path) -> None:
    target = tmp_path / "installed"
    install = ("install", "--quiet", "--no-deps", "--no-index", "--target")
    command = [sys.executable, pip(), *install, str(target), str(wheel(tmp_path))]
    subprocess.run(command, check=True)
    project = new_project()
    project.path.append(str(target))
    build(project)
    # Its code counts: an edit of it makes the points new that it computes.
    source = target / "my_policies" / "rough_chain.py"
    source.write_text(source.read_text().replace("default=1e-4", "default=1e-5"))
    assert any("rough_chain: its code changed" in line for line in project.ask("why", "tiny"))
    # And what cannot be imported is told.
    source.write_text("import nothing_of_this_name")
    for verb in (("check", "tiny"), ("schema",)):
        (told,) = project.run("manyserver", *verb, code=1).splitlines()
        assert "the method 'rough_chain' of the package my-policies: cannot import" in told
