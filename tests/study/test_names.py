"""Names that become files: of studies, figures, fits and units."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.study.conftest import STUDY, mistakes

from manyserver.__main__ import main
from manyserver.plan import Plan
from manyserver.study.config.names import LONGEST, REPEATED
from manyserver.validation import ConfigError

GOOD = ["a", "1", "v1.2", "A-b_c.d", "x" * 19, "x" * 99 + "y", "1e3", "true"]
BAD = [
    r"\$(touch X)",
    "`touch X`",
    "a&b",
    "a b",
    "a'b",
    'a"b',
    "-rf",
    "{a}",
    "a\nb",
    "ü",
    "_a",
    "a;b",
    "x" * 99 + "yz",
    "ab" * 20,
    "a*",
    "\u0661",
]
RESERVED = ["points", "all", "default", "README.md", "Points"]


def refusals(folder: Path, **overrides: object) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        Plan(folder, overrides)
    return caught.value.lines


@pytest.mark.parametrize("name", GOOD)
def test_good_names_of_studies(write_study: Any, name: str) -> None:
    path = write_study(name=name)
    assert Plan(path.parents[1], {"studies": [name]}).names == (name,)


@pytest.mark.parametrize("name", [*BAD, *RESERVED])
@pytest.mark.parametrize("verb", ["check", "status", "why"])
def test_bad_names_of_studies(write_study: Any, name: str, verb: str) -> None:
    path = write_study()
    path.rename(path.with_name(f"{name}.yaml"))
    for studies in ([], ["--", name]):
        result = CliRunner().invoke(main, ["--config", str(path.parents[1]), verb, *studies])
        assert result.exit_code == 1
        assert len(result.output.splitlines()) == 1
        assert result.output.startswith(f"{path.parent}: the file ")
        assert "must have another name; " in result.output


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("key", ["figures", "fits"])
def test_bad_names_of_figures_and_fits(write_study: Any, key: str, name: str) -> None:
    (line,) = mistakes(write_study({f"{key}.0.name": name}))
    assert line.startswith(f"{key}[0].name = ")
    assert "a name must begin with a letter or a digit" in line


def test_figures_differ_by_more_than_case(write_study: Any) -> None:
    figure = STUDY["figures"][0]
    figures = [{**figure, "name": "a"}, {**figure, "name": "A"}]
    assert mistakes(write_study({"figures": figures})) == (
        "figures[1].name: 'A' occurs twice; must be unique",
    )


def test_which_files_are_studies(write_study: Any) -> None:
    path = write_study()
    for name in ("small.yaml~", ".small.yaml", ".small.yaml.swp", "notes.txt", "small.yaml.bak"):
        path.with_name(name).write_text("")
    path.rename(path.with_name("other.yml"))
    assert Plan(path.parents[1]).names == ("other",)
    write_study(name="Other")
    assert refusals(path.parents[1]) == (
        f"{path.parent}: 'Other.yaml' and 'other.yml' have the same name, but for suffix or case; "
        "keep one",
    )
    path.with_name("Other.yaml").unlink()
    path.with_name("folder.yaml").mkdir()
    assert refusals(path.parents[1]) == (
        f"{path.parent / 'folder.yaml'}: cannot be read: Is a directory",
    )


CONFIGS: dict[str, tuple[str | bytes, str]] = {
    "list": ("- a\n", ": ['a']: must be keys with values, such as 'key: value'"),
    "number": ("5\n", ": 5: must be keys with values, such as 'key: value'"),
    "number of studies": (
        "on_request: []\nstudies: 5\n",
        ", line 2: studies = 5: must be default,",
    ),
    "Boolean among names": ("studies: [a, true]\n", ", line 1: studies = ['a', True]: must be "),
    "nothing": ("studies:\n", ", line 1: studies = null: must be default, all, or a list of names"),
    "Latin-1": ("# ü\n".encode("latin-1"), ", line 1: is not UTF-8 text (byte #xfc)"),
    "brackets": ("studies: " + "[" * 300 + "]" * 300, ", line 1: is nested too deeply"),
    "typo": (
        "studies: all\nonrequest: []\n",
        ", line 2: onrequest = []: unknown key; did you mean",
    ),
    "text for a Boolean": (
        "allow_failures: yes\n",
        ", line 1: allow_failures = 'yes': must be true",
    ),
    "no study": (
        "\nstudies: [smal]\n",
        ", line 2: studies: there is no study 'smal'; did you mean",
    ),
    "doubled": ("studies: all\nstudies: all\n", ", line 2: the key 'studies' occurs twice, the "),
}


@pytest.mark.parametrize("text,start", CONFIGS.values(), ids=CONFIGS)
def test_config_files_that_cannot_be_used(write_study: Any, text: str | bytes, start: str) -> None:
    path = write_study().parents[1] / "config.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    (line,) = refusals(path.parent)
    assert line.startswith(f"{path}{start}")


def test_the_suffix_of_the_config_file(write_study: Any) -> None:
    folder = write_study().parents[1]
    (folder / "config.yml").write_text("studies: [smal]\n")
    (line,) = refusals(folder)
    assert line.startswith(f"{folder / 'config.yml'}, line 1: studies: there is no study 'smal'")
    (folder / "config.yaml").write_text("studies: all\n")
    told = "must not hold both config.yaml and config.yml; keep one"
    assert refusals(folder) == (f"{folder}: {told}",)


@pytest.mark.parametrize("text", ["", "# nothing\n", "studies: small\n", "studies: [small]\n"])
def test_config_files_and_what_replaces_them(write_study: Any, text: str) -> None:
    folder = write_study().parents[1]
    write_study(name="large")
    (folder / "config.yaml").write_text(f"{text}on_request: [large]\n")
    assert Plan(folder).names == ("small",)
    for studies in ("large,small", ["large", "small"], "large, small", "large,small,large"):
        assert Plan(folder, {"studies": studies}).names == ("large", "small")
    assert Plan(folder, {"studies": "all"}).names == ("large", "small")
    assert [
        Plan(folder, {"allow_failures": value}).config.allow_failures
        for value in (True, "true", "False", False)
    ] == [True, True, False, False]
    assert refusals(folder, allow_failures="maybe") == (
        "command line: allow_failures = 'maybe': must be true or false",
    )


LABELS = [
    "x" * 300,
    "x" * 299 + "y",
    "..",
    "a/b",
    "a\nb",
    "ü",
    "Ü",
    r"\$(touch X)",
    "sq",
    "SQ",
    "-",
]


def test_names_of_units_are_names_of_files(write_study: Any) -> None:
    policies = [{"name": "sq", "d": 2 + i, "label": label} for i, label in enumerate(LABELS)]
    study = Plan(write_study({"policies": policies, "unit": ["policy"]}).parents[1]).study("small")
    names = [name.removeprefix("mean_field/") for name in study.units]
    assert len({name.lower() for name in names}) == len(policies)
    assert max(map(len, names)) <= LONGEST
    assert [name for name in names if REPEATED.search(name)] == []
    assert [name for name in names if not name.replace("_", "a").replace("-", "a").isalnum()] == []
    assert all(name.isascii() for name in names)
