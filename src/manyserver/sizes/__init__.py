"""Laws of the job size, found by discovery.

Every module in this package that defines a :class:`~manyserver.sizes.base.SizeLaw` with a `name`
adds it to the registry; nothing else has to change for a new law.
"""

from functools import cache

from manyserver.registry import discovered, found, made
from manyserver.sizes.base import SizeLaw

__all__ = ["SizeLaw", "names", "size_class", "sizes"]


@cache
def _registry() -> dict[str, type[SizeLaw]]:
    return discovered(SizeLaw, __name__, __path__)


def names() -> tuple[str, ...]:
    """Return the names of all laws, in alphabetical order."""
    return tuple(_registry())


def size_class(name: str) -> type[SizeLaw]:
    """Return the class of a law.

    Raises
    ------
    ValueError
        If there is no law of this name.
    """
    return found(_registry(), name, "law")


def sizes(name: str, **parameters: object) -> SizeLaw:
    """Make a law of the job size from its name and parameters.

    Parameters
    ----------
    name : str
        For example ``"pareto"``; ``from manyserver.sizes import names`` gives all.
    **parameters
        Those of that law, for example ``shape=2.5``. Every law takes `mean`, which is one by
        default: the unit of time is the mean job size divided by speed 1. A `phase_type` or
        `empirical` law keeps the mean of what it is given unless one is asked for.

    Returns
    -------
    SizeLaw

    Raises
    ------
    ValueError
        If the name or a parameter is unknown, missing, or out of its range.

    Examples
    --------
    >>> import manyserver as ms
    >>> ms.sizes("pareto", shape=2.5)
    Pareto(shape=2.5, mean=1.0)
    >>> float(ms.sizes("hyperexponential", scv=4).quantile(0.99).round(3))
    10.746
    """
    return made(size_class(name), name, "law", parameters)
