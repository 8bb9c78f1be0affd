"""How jobs are kept and served under each discipline, in a module of its name.

Such a module has a named tuple `State` as :class:`~manyserver.simulation.jobs.servers.Servers`
describes it, and implements the functions of :mod:`manyserver.simulation.jobs.servers` for it.
"""

import importlib

from manyserver.disciplines import Discipline
from manyserver.simulation.jobs.servers import Servers

__all__ = ["state_of"]


def state_of(discipline: Discipline) -> type[Servers]:
    """Return the type of the state of the servers under a discipline.

    Examples
    --------
    >>> from manyserver.disciplines import discipline
    >>> state_of(discipline("ps"))
    <class 'manyserver.simulation.jobs.disciplines.ps.State'>
    """
    module = importlib.import_module(f"{__name__}.{discipline.name}")
    kind: type[Servers] = module.State
    return kind
