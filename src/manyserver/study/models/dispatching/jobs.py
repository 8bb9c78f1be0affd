"""Job sizes and the discipline of the servers, as an axis of a study."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from manyserver.disciplines import Discipline
from manyserver.disciplines.service import checked_service
from manyserver.sizes import SizeLaw, size_law
from manyserver.study.models.dispatching.config import JobsConfig

__all__ = ["Jobs", "read_jobs"]


@dataclass(frozen=True)
class Jobs:
    """Law of the job sizes, and the discipline."""

    sizes: SizeLaw
    discipline: Discipline

    @cached_property
    def told(self) -> dict[str, Any]:
        """All that a result depends on, as plain values.

        Measured sizes are told by a digest of them, so that it makes no difference where they lie,
        and a change of the file is noticed.
        """
        law = self.sizes
        measured = getattr(law, "digest", None)
        parameters = {"digest": measured, "mean": law.mean} if measured else law.parameters
        return {"sizes": {"name": law.name, **parameters}, "discipline": self.discipline.name}


def read_jobs(item: JobsConfig, folder: Path) -> Jobs:
    """Make the law and the discipline that a study names.

    Parameters
    ----------
    item : JobsConfig
        What the study says.
    folder : pathlib.Path
        Where a file of measured sizes is looked for, unless its path is absolute.

    Raises
    ------
    ValueError, FileNotFoundError
        If there is no such law or file, or a parameter is out of its range.
    """
    if item.sizes is None:
        return Jobs(*checked_service(None, item.discipline))
    parameters = item.sizes.parameters
    if isinstance(parameters.get("file"), str):
        parameters["file"] = _found(folder, parameters["file"])
    return Jobs(*checked_service(size_law(item.sizes.name, **parameters), item.discipline))


def _found(folder: Path, file: str) -> str:
    """Return the path of a file, without detours, for messages."""
    path = folder / file
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts and parts[-1] not in ("..", path.anchor):
            parts.pop()
        else:
            parts.append(part)
    return str(Path(*parts))
