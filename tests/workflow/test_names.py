"""Names of folders and files that a shell could take for commands."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.workflow.conftest import totals

if TYPE_CHECKING:
    from tests.workflow.conftest import Project

NewProject = Callable[[], "Project"]
FOLDER = "o'neil {a} {{b}} $(touch X) `touch Y` & \"\n ü"


def test_a_checkout_in_a_folder_with_an_odd_name_and_another_python_first(
    finished: "tuple[Project, str]", tmp_path: Path
) -> None:
    project = finished[0].copied(tmp_path / FOLDER)
    project.copy_source()
    shutil.rmtree(project.folder / "results" / "tiny")
    other = tmp_path / "bin" / "python"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\nexit 3\n")
    other.chmod(0o755)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "2"],
        cwd=project.folder,
        env={**environment, "PATH": f"{other.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert totals(done.stderr) == (0, 8, 0)
    assert not {"X", "Y"} & {path.name for path in project.folder.rglob("*")}


def test_a_study_whose_name_is_a_command_is_refused(new_project: NewProject) -> None:
    project = new_project()
    project.study = project.study.rename(project.study.with_name("$(touch X).yaml"))
    for arguments in ([], ["--config", "studies=$(touch X)"]):
        said = project.snakemake(*arguments, code=1).splitlines()
        assert said[-2] == "The configuration cannot be used:"
        assert said[-1].startswith(
            "config/studies: the file '$(touch X).yaml' must have another name; a name must begin "
        )
    assert {path.name for path in project.folder.iterdir()} & {"X", "results"} == set()


CONFIGS: dict[str, tuple[str, list[str], str]] = {
    "a list": (
        "- tiny\n",
        [],
        "config/config.yaml: ['tiny']: must be keys with values, such as 'key: value'",
    ),
    "brackets": (
        f"studies: {'[' * 300}{']' * 300}\n",
        [],
        "config/config.yaml, line 1: is nested too deeply; must be at most 50 levels deep",
    ),
    "command line": (
        "studies: all\n",
        ["--config", "studies=tiny,tony"],
        "command line: studies: there is no study 'tony'; did you mean 'tiny'? Allowed: tiny",
    ),
}


@pytest.mark.parametrize("text,arguments,line", CONFIGS.values(), ids=CONFIGS)
def test_a_configuration_that_cannot_be_used(
    new_project: NewProject, text: str, arguments: list[str], line: str
) -> None:
    project = new_project()
    (project.folder / "config" / "config.yaml").write_text(text)
    said = project.snakemake(*arguments, code=1).splitlines()
    assert said[-2:] == ["The configuration cannot be used:", line]


def test_the_command_line_replaces_the_file(new_project: NewProject) -> None:
    project = new_project()
    shutil.copy(project.study, project.study.with_name("other.yml"))
    (project.folder / "config" / "config.yaml").write_text("on_request: [other]\n")
    (project.folder / "chosen.yaml").write_text("studies: [other, tiny]\n")
    for arguments, names in {
        (): {"tiny"},
        ("--config", "studies=other", "allow_failures=true"): {"other"},
        ("--config", "studies=other,tiny"): {"other", "tiny"},
        ("--config", "studies=all"): {"other", "tiny"},
        ("--configfile", "chosen.yaml"): {"other", "tiny"},
    }.items():
        said = project.snakemake("--dry-run", *arguments)
        assert {name for name in ("other", "tiny") if f"{name}: fit rates" in said} == names
