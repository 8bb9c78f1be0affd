"""What all commands share."""

from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

if TYPE_CHECKING:
    from manyserver.plan import Plan

__all__ = ["FILE", "RESULTS", "plan_of", "say"]

FILE = click.Path(path_type=Path)
RESULTS = click.option(
    "--results",
    type=FILE,
    default=Path("results"),
    show_default=True,
    help="Folder with the results.",
)


def say(line: str, file: TextIO | None = None) -> None:
    """Print a line at once."""
    try:
        print(line, file=file, flush=True)
    except OSError:
        # A full disk must not stop what can still be computed and kept; writing that tells it.
        return


def plan_of(folder: Path, *studies: str) -> "Plan":
    """Return the plan of some studies, or of those that ``config.yaml`` names.

    Raises
    ------
    ConfigError
        If one of them is unknown, or something is wrong with it.
    """
    from manyserver.plan import Plan
    from manyserver.validation import ConfigError

    if not folder.is_dir():
        told = "is no folder; run this in the folder of a project, or name its own with --config"
        raise ConfigError([f"{folder}: {told}"])
    return Plan(folder, {"studies": studies} if studies else {})
