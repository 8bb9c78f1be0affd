"""What fits of the approach to the limit have in common."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from manyserver.analysis.curves import required_method
from manyserver.fits.base import Fit
from manyserver.fits.row import fit_row
from manyserver.methods import Role
from manyserver.methods.base import Strict
from manyserver.statistics.rates import coefficient, power_law

if TYPE_CHECKING:
    import xarray as xr

    from manyserver.analysis.supply import Supply

__all__ = ["ConvergenceFit", "ConvergenceOptions", "Series", "rows_of_order"]

Series = tuple[np.ndarray, np.ndarray, np.ndarray | None]
"""Numbers of servers, values, and their standard errors; None if the values are exact."""


class ConvergenceOptions(Strict):
    """The methods that are compared."""

    method: str | None = None
    """Method of the finite systems; the one that simulates if left out."""
    limit: str | None = None
    """Method of the limit; that of the study if left out."""


Options = TypeVar("Options", bound=ConvergenceOptions)


class ConvergenceFit(Fit[Options]):
    """A fit of finite systems against the limit.

    Attributes
    ----------
    finite_role : Role
        Of the method of the finite systems, unless the options name one.
    """

    finite_role: ClassVar[Role] = Role.SIMULATION

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as the limit."""
        yield study.lacks(options.method or self.finite_role, at="finite")
        yield study.lacks(options.limit or Role.LIMIT, at="limit")

    def compared(self, cube: "xr.Dataset", options: Options) -> tuple[str, str]:
        """Return the methods of the finite systems and of the limit.

        Raises
        ------
        ValueError
            If the cube lacks one.
        """
        finite = required_method(cube, options.method or self.finite_role)
        return finite, required_method(cube, options.limit or Role.LIMIT)


def rows_of_order(
    curve: "xr.Dataset", series: Series, exponent: float, expected: float, **told: Any
) -> Iterator[dict[str, Any]]:
    """Yield a row with the exponent of N, and one with the coefficient of 1/N.

    Parameters
    ----------
    curve, **told
        As for :func:`~manyserver.fits.row.fit_row`.
    series : Series
    exponent, expected : float
        What theory says of both.
    """
    yield fit_row(curve, power_law(*series), parameter="exponent", expected=exponent, **told)
    rate = coefficient(*series)
    yield fit_row(curve, rate, parameter="coefficient of 1/N", expected=expected, **told)
