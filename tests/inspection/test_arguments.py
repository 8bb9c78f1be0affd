"""Every command says in one line what is wrong with its arguments."""

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.inspection.conftest import Project

NAME = "mean_field/sq-d-2_limit"
UNIT, CUBE = f"{{results}}/small/units/{NAME}.jsonl", "{results}/small/cube.nc"
NO_STUDY = "there is no study 'smal'; did you mean 'small'? Allowed: small"
MISTAKES: dict[str, tuple[str, str]] = {
    **{f"{verb} of no study": (f"{verb} smal", NO_STUDY) for verb in ("check", "status", "why")},
    "unit of no study": ("unit smal u {out}", NO_STUDY),
    "cube of no study": (f"cube smal {{out}} {UNIT}", NO_STUDY),
    "fits of no study": (f"fits smal {CUBE} {{out}}", NO_STUDY),
    "figures of no study": (f"figures smal {CUBE} {{out}}", NO_STUDY),
    "verify of no study": (f"verify smal {{out}} {UNIT}", NO_STUDY),
    "no unit": (f"unit small {NAME}s {{out}}", f"no unit '{NAME}s'; did you mean '{NAME}'?"),
    "no figure": (f"figures small {CUBE} {{out}} f", "there is no figure 'f'; Allowed: none"),
    "no file of a unit": ("cube small {out} nowhere.jsonl", "nowhere.jsonl: No such file"),
    "no file to verify": ("verify small {out} nowhere.jsonl", "nowhere.jsonl: No such file"),
    "no cube": ("fits small nowhere.nc {out}", "nowhere.nc: No such file"),
    "a file that is no cube": (f"fits small {UNIT} {{out}}", f"{UNIT}: cannot be read as a cube"),
    "a folder as output": (f"fits small {CUBE} {{results}}", "Is a directory"),
    "a folder as a unit": ("cube small {out} {results}", "{results}: Is a directory"),
    "a file as results": (f"why small --results {CUBE}", "Not a directory"),
    "a file as the store": (
        f"unit small {NAME} {{out}} --store {CUBE}",
        "Not a directory",
    ),
    "no folder of schemas": ("schema nowhere", "nowhere/config.schema.json: No such file"),
    "a path that is no study": ("check /smal.yaml", "there is no study '/smal.yaml'; "),
    "an option as a study": ("check -- -rf", "there is no study '-rf'; "),
}


@pytest.mark.parametrize("command,told", MISTAKES.values(), ids=MISTAKES)
def test_one_line_without_a_traceback(project: "Project", command: str, told: str) -> None:
    words = [
        word.format(results=project.results, out=project.folder / "out") for word in command.split()
    ]
    said = project.call(*words, code=1)
    assert told.format(results=project.results) in said
    assert re.fullmatch(r"[^\n]+\n", said)
    assert not (project.folder / "out").exists()


def test_a_study_is_named_in_three_ways(project: "Project") -> None:
    project.write("v1.2")
    path = project.folder / "config" / "studies" / "v1.2.yaml"
    for given in ("v1.2", "v1.2.yaml", str(path)):
        assert project.call("check", given).startswith("v1.2: 2 points in 1 unit; ")
    path.rename(path.with_suffix(".yml"))
    assert project.ask("why", "v1.2.yml")[0].startswith("v1.2: no points to compute, 2 stored")
