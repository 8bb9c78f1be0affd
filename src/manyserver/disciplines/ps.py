"""Processor sharing."""

from dataclasses import dataclass
from typing import ClassVar

from manyserver.disciplines.base import Discipline

__all__ = ["ProcessorSharing"]


@dataclass(frozen=True)
class ProcessorSharing(Discipline):
    """All jobs at a server are served at once, each by an equal part of its speed."""

    name: ClassVar[str] = "ps"
    title: ClassVar[str] = "processor sharing"
    insensitive: ClassVar[bool] = True
