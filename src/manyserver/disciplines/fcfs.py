"""First come, first served."""

from dataclasses import dataclass
from typing import ClassVar

from manyserver.disciplines.base import Discipline

__all__ = ["FirstComeFirstServed"]


@dataclass(frozen=True)
class FirstComeFirstServed(Discipline):
    """A server works on one job at a time, in the order in which they arrived."""

    name: ClassVar[str] = "fcfs"
    title: ClassVar[str] = "first come, first served"
    waiting: ClassVar[bool] = True
