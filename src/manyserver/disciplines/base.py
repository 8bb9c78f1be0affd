"""What every discipline tells."""

from abc import ABC
from typing import ClassVar

__all__ = ["Discipline"]


class Discipline(ABC):
    """The order in which a server works on its jobs.

    How jobs are simulated under it says the module of its name in
    :mod:`manyserver.simulation.jobs.disciplines`.

    Attributes
    ----------
    name : str
        Short name, as in ``discipline="ps"``.
    title : str
        What figures and tables call it.
    waiting : bool
        Whether a job waits first, and is then served without a break, so that it has a waiting
        time.
    insensitive : bool
        Whether the number of jobs at a server whose Poisson arrivals depend on that number alone
        has a law that depends on the sizes by their mean alone.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    waiting: ClassVar[bool] = False
    insensitive: ClassVar[bool] = False
