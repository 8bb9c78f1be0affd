"""CONTRIBUTING.md names what there is."""

import re
from pathlib import Path

from manyserver import claims, figures, fits, methods, policies, sizes

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()


def commands(text: str) -> set[str]:
    """Lines that run a program of the project, without comments and pipes."""
    lines = re.findall(r"^ *(uv run .*)$", text, re.MULTILINE)
    return {re.split(" +[#|] ", line)[0].strip() for line in lines}


def test_the_commands_are_those_of_the_checks() -> None:
    assert commands(PAGE) == commands((ROOT / ".ci" / "run").read_text())


def test_all_paths_are_there() -> None:
    paths = [one for one in re.findall(r"`([^` ]+)`", PAGE) if re.search(r"[/.]", one)]
    paths += re.findall(r"\]\(([^)]+)\)", PAGE)
    assert len(paths) > 20
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_each_of_the_kinds_has_its_folder() -> None:
    folders = re.findall(r"^\| an? .* \| `src/(\S+)/` \|", PAGE, re.MULTILINE)
    kinds = [policies, sizes, methods, figures, fits, claims]
    assert folders == [kind.__name__.replace(".", "/") for kind in kinds]


def test_it_is_one_page_that_is_linked() -> None:
    assert len(PAGE.splitlines()) < 80
    assert "](CONTRIBUTING.md)" in (ROOT / "README.md").read_text()
    assert "../CONTRIBUTING.md" in (ROOT / "docs" / "contributing.md").read_text()
