"""What an integration of the mean field returns."""

from dataclasses import dataclass, field

import numpy as np

__all__ = ["Path"]


@dataclass
class Path:
    """A trajectory.

    Parameters
    ----------
    tails : numpy.ndarray, shape (time, pool, level)
    joins : numpy.ndarray, shape (time, pool, level)
        Part of the arrivals that join each class.
    rates : numpy.ndarray, shape (time, pool, level)
        Arrivals to one server of each class, over the arrival rate.
    more : dict of str to numpy.ndarray, shape (time, ...)
        Further variables, by name.
    """

    tails: np.ndarray
    joins: np.ndarray
    rates: np.ndarray
    more: dict[str, np.ndarray] = field(default_factory=dict)
