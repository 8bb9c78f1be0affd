"""A schema of variables: their dimensions, units, symbols, meanings and roles, by name.

There is one schema for results of dispatching policies (:mod:`manyserver.variables`) and one for
those of the Halfin-Whitt regime (:mod:`manyserver.diffusion.halfin_whitt.labels`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["ERROR", "HALF_WIDTH", "Purpose", "Schema", "Suffix", "Variable"]


class Purpose(Enum):
    """What a variable is for."""

    VALUE = "value"
    """It is what a method was asked for."""
    HALF_WIDTH = "half-width"
    """Half of a 95 % confidence interval of another variable."""
    BOUND = "bound"
    """The error of another variable of a deterministic method is not larger."""
    RELATIVE_ERROR = "relative error"
    """By a part of this size all values beside it may be wrong."""
    DIAGNOSTIC = "diagnostic"
    """It says how values were computed, and may differ where they agree."""


@dataclass(frozen=True)
class Variable:
    """One variable of a result.

    Parameters
    ----------
    dims : tuple of str
        Its dimensions; results over time or over a study have further ones before these.
    units : str
        In terms of ``jobs`` and ``time`` (mean job size divided by speed 1); ``"1"`` for none.
    symbol : str
        As the papers write it, for figures.
    long_name : str
        One line of plain words.
    purpose : Purpose
    """

    dims: tuple[str, ...]
    units: str
    symbol: str
    long_name: str
    purpose: Purpose = Purpose.VALUE

    @property
    def attributes(self) -> dict[str, str]:
        """Attributes of the variable in a dataset."""
        described = {"units": self.units, "long_name": self.long_name, "symbol": self.symbol}
        return {key: value for key, value in described.items() if value}


@dataclass(frozen=True)
class Suffix:
    """What a suffix makes of a variable.

    Parameters
    ----------
    meaning : str
        Plain words, which those of the variable follow.
    purpose : Purpose
        Of the variable with the suffix.
    """

    meaning: str
    purpose: Purpose = Purpose.VALUE


HALF_WIDTH = "_half_width"
"""Suffix of the variable that holds the half-width of another one's 95 % interval."""
ERROR = "_error"
"""Suffix of the variable that holds a bound of another one's error."""


@dataclass(frozen=True)
class Schema:
    """All variables that results of one kind can hold.

    Parameters
    ----------
    variables : mapping of str to Variable
    suffixes : mapping of str to Suffix
        A variable's name with one of them is a variable, too.
    """

    variables: Mapping[str, Variable]
    suffixes: Mapping[str, Suffix]

    def lookup(self, name: str) -> Variable:
        """Return the description of a variable, with suffixes or without.

        Raises
        ------
        KeyError
            If there is no such variable.
        """
        if name in self.variables:
            return self.variables[name]
        for suffix, made in self.suffixes.items():
            if name.endswith(suffix):
                base = self.lookup(name.removesuffix(suffix))
                text = f"{made.meaning}: {base.long_name}"
                return Variable(base.dims, base.units, "", text, made.purpose)
        raise KeyError(name)

    def errors_of(self, name: str) -> list[str]:
        """Return the names that the errors of a variable have.

        Examples
        --------
        >>> from manyserver.variables import SCHEMA
        >>> SCHEMA.errors_of("sojourn_mean")
        ['sojourn_mean_half_width']
        """
        errors = (Purpose.HALF_WIDTH, Purpose.BOUND)
        return [name + suffix for suffix, made in self.suffixes.items() if made.purpose in errors]

    def of_purpose(self, purpose: Purpose, names: Iterable[str]) -> list[str]:
        """Return those of some names that have a purpose; what the schema lacks is a value."""
        return [name for name in names if self._purpose(name) is purpose]

    def _purpose(self, name: str) -> Purpose:
        try:
            return self.lookup(name).purpose
        except KeyError:
            return Purpose.VALUE

    def described(
        self, values: Mapping[str, object], before: tuple[str, ...] = ()
    ) -> dict[str, tuple[tuple[str, ...], np.ndarray, dict[str, str]]]:
        """Return dimensions, array and attributes of every value, as a dataset takes them.

        Parameters
        ----------
        values : mapping of str to array_like
            By variable name; the shape is that of the variable's dimensions.
        before : tuple of str
            Dimensions before these.

        Raises
        ------
        KeyError
            If a name is not in the schema.
        ValueError
            If an array has another number of dimensions.
        """
        found = {}
        for name, value in values.items():
            variable, array = self.lookup(name), np.asarray(value)
            dims = before + variable.dims
            if array.ndim != len(dims):
                raise ValueError(f"{name}: has shape {array.shape}; must have dimensions {dims}")
            found[name] = (dims, array, variable.attributes)
        return found

    def labelled(
        self,
        values: Mapping[str, object],
        coords: Mapping[str, object],
        attrs: Mapping[str, object],
    ) -> xr.Dataset:
        """Turn bare arrays into a dataset with names, units and coordinates.

        Parameters
        ----------
        values, coords : mapping of str to array_like
            By variable name; the shape is that of the variable's dimensions.
        attrs : mapping
            Attributes of the dataset.

        Returns
        -------
        xarray.Dataset

        Raises
        ------
        KeyError
            If a name is not in the schema.
        """
        # Imported here so that a study can be checked without waiting for xarray.
        import xarray as xr

        return xr.Dataset(self.described(values), coords=self.described(coords), attrs=dict(attrs))
