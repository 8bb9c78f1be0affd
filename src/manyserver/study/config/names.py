"""Names that become files and folders: of studies, figures and fits; and where studies lie."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from manyserver.validation import ConfigError, shown, suggestion

__all__ = ["LONGEST", "REPEATED", "Name", "study_files", "study_name", "study_path"]

LONGEST = 100
PATTERN = rf"^[A-Za-z0-9][A-Za-z0-9_.-]{{0,{LONGEST - 1}}}$"
REPEATED = re.compile(r"(.+)\1{19}$")
"""What Snakemake takes for the sign of an endless recursion: an end that is repeated 20 times."""
ALLOWED = (
    f"a name must begin with a letter or a digit (A-Z, a-z, 0-9), hold no others but _ . and -, "
    f"have at most {LONGEST} characters, and not end in twenty repetitions"
)
SUFFIXES = (".yaml", ".yml")
RESERVED = {
    "all": "means all studies",
    "default": "means the default studies",
    "points": "is the folder of the store, results/points",
    "readme.md": "is a file in results/",
}


def _checked(name: str) -> str:
    if not re.fullmatch(PATTERN, name) or REPEATED.search(name):
        raise ValueError(f"{shown(name)}: {ALLOWED}")
    return name


Name = Annotated[str, AfterValidator(_checked), Field(json_schema_extra={"pattern": PATTERN})]
"""Name of a figure or a fit."""


def study_files(folder: Path) -> dict[str, list[Path]]:
    """Return the files of all studies by name, those that cannot be used among them.

    A name has several files if they differ in suffix or in upper and lower case alone; on some
    file systems these would share their results. Hidden files and those with other suffixes, such
    as the backups of editors, are no studies.

    Parameters
    ----------
    folder : pathlib.Path
        The configuration, which has the folder ``studies``.
    """
    found = sorted(
        path
        for path in (folder / "studies").glob("*")
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
    )
    alike: dict[str, list[Path]] = {}
    for path in found:
        alike.setdefault(path.stem.casefold(), []).append(path)
    return {path.stem: alike[path.stem.casefold()] for path in found}


def study_name(folder: Path, given: str) -> str:
    """Return the name of a study that is given by its name, that of its file, or a path to it.

    What is none of these is returned as it is.
    """
    path = Path(given)
    known = study_files(folder)
    if given in known or path.suffix.lower() not in SUFFIXES or path.stem not in known:
        return given
    here = path.parent in (Path(), folder / "studies")
    return path.stem if here or path.resolve() in map(Path.resolve, known[path.stem]) else given


def study_path(folder: Path, name: str) -> Path:
    """Return the file of a study.

    Raises
    ------
    ConfigError
        If there is none of this name, or several, or it is no name for a study.
    """
    files = study_files(folder)
    where = folder / "studies"
    if name not in files:
        told = suggestion(name, files)
        raise ConfigError([f"{where}: there is no study {shown(name)}; {told}"])
    paths = files[name]
    if len(paths) > 1:
        told = " and ".join(shown(path.name) for path in paths)
        raise ConfigError([f"{where}: {told} have the same name, but for suffix or case; keep one"])
    file = f"{where}: the file {shown(paths[0].name)}"
    if name.casefold() in RESERVED:
        raise ConfigError([f"{file} must have another name; {name} {RESERVED[name.casefold()]}"])
    try:
        _checked(name)
    except ValueError:
        raise ConfigError([f"{file} must have another name; {ALLOWED}"]) from None
    return paths[0]
