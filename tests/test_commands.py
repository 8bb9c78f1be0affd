"""The help of the commands."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from manyserver.__main__ import main
from manyserver.commands import SECTIONS, build, inspect, one_point, planning, summary

COMMANDS = {str(one.name): one for commands in SECTIONS.values() for one in commands}


def test_every_command_is_in_one_section() -> None:
    modules = (build, inspect, one_point, planning, summary)
    assert sorted(COMMANDS) == sorted(name for one in modules for name in one.__all__)
    assert sum(map(len, SECTIONS.values())) == len(COMMANDS)


def test_the_help_lists_commands_for_people_first() -> None:
    said = CliRunner().invoke(main, ["--help"]).output
    people, rules = said.split("\nWhat the rules of the workflow call:\n")
    assert [line.split()[0] for line in rules.splitlines() if line[2:3].strip()] == [
        "unit",
        "cube",
        "fits",
        "tables",
        "figures",
        "verify",
    ]
    assert all(f"\n  {name} " in people for name in ("check", "status", "why", "clean"))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_explains_every_argument_and_option(name: str) -> None:
    command = COMMANDS[name]
    summary = command.get_short_help_str(200)
    assert summary[0].isupper() and summary.endswith(".")
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
        else:
            assert str(parameter.name).upper() in (command.help or ""), parameter.name


def test_a_folder_without_a_project_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["status"])
    assert result.exit_code == 1
    assert result.output.startswith("config: is no folder; run this in the folder of a project")
