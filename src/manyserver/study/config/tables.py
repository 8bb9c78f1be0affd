"""The typed form of a table of results."""

from pydantic import Field

from manyserver.methods.base import Strict
from manyserver.study.config.axes import Values
from manyserver.study.config.names import Name

__all__ = ["TableConfig"]


class TableConfig(Strict):
    """A table: a row for every value on some axes, a column for every value on the others."""

    name: Name
    """Name of its files."""
    quantity: str = "sojourn_mean"
    """A variable of the cube without further dimensions."""
    rows: tuple[str, ...] = Field(min_length=1)
    """Axes of the cube that make the rows, such as `load` or `policy`, in this order."""
    columns: tuple[str, ...] = Field(min_length=1)
    """Axes of the cube that make the columns, in this order; all axes with several values must be
    in one of the two."""
    systems: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Labels of the systems that are told; all if left out."""
    policies: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Labels of the policies; all if left out."""
    jobs: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Labels of the job sizes and disciplines; all if left out."""
    rates: tuple[float, ...] | None = Field(default=None, min_length=1)
    """Values of the swept one of `load` and `arrival_rate`; all if left out."""
    n_servers: tuple[int, ...] | None = Field(default=None, min_length=1)
    """Numbers of servers; all and the limit if left out."""
    at: dict[str, Values] = Field(default={})
    """Values of axes of the study's own, by the name of the axis; all if left out."""
