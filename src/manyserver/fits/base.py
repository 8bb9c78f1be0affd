"""What a kind of fit is, and the options that kinds share."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import BaseModel

from manyserver.analysis.kinds import Kind
from manyserver.methods.base import Strict

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Fit", "FitOptions"]


class FitOptions(Strict):
    """Options that every kind of fit of dispatching policies has."""

    systems: list[str] | None = None
    """Labels of systems; all if left out."""
    policies: list[str] | None = None
    """Labels of policies; all if left out."""
    jobs: list[str] | None = None
    """Labels of job sizes and disciplines; all if left out."""


Options = TypeVar("Options", bound=BaseModel)


class Fit(Kind[Options]):
    """A kind of fit: cube -> rows of a table.

    Attributes
    ----------
    across_jobs : bool
        Whether it compares several job sizes and disciplines; otherwise it gets a cube for each.
    across_axes : bool
        Whether it reads along axes of the study's own; otherwise it gets a cube for each value.
    """

    across_jobs: ClassVar[bool] = False
    across_axes: ClassVar[bool] = False

    @abstractmethod
    def rows(self, cube: "xr.Dataset", options: Options) -> Iterator[dict[str, Any]]:
        """Yield one row per fit, as :func:`manyserver.fits.row.fit_row` writes it."""
