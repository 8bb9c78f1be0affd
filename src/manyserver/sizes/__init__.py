"""Laws of the job size, found by :mod:`manyserver.registry`.

Every module in this package that defines a :class:`~manyserver.sizes.base.SizeLaw` adds it under
its `name`, and so does an entry point of the group ``manyserver.sizes`` in any other package. The
classes can be imported from here.
"""

from typing import Any

from manyserver.registry import Registry
from manyserver.sizes.base import SizeLaw

__all__ = ["SizeLaw", "names", "size_class", "size_law"]

REGISTRY = Registry("law", SizeLaw, __name__)
names, size_class = REGISTRY.names, REGISTRY.find


def __getattr__(name: str) -> Any:
    return REGISTRY.exported(name)


def size_law(name: str, **parameters: Any) -> SizeLaw:
    """Make a law of the job size from its name and parameters.

    Parameters
    ----------
    name : str
        For example ``"pareto"``; ``manyserver.sizes.names()`` gives all.
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
    >>> ms.size_law("pareto", shape=2.5)
    Pareto(shape=2.5, mean=1.0)
    >>> float(ms.sizes.Hyperexponential(scv=4).quantile(0.99).round(3))
    10.746
    """
    return REGISTRY.make(name, **parameters)
