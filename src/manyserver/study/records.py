"""Records: one computed point as one line of text that proves its own integrity."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from manyserver.study.points import Point, canonical, digest

__all__ = ["Record", "decode", "encode", "point_key", "record_of"]

_HEAD = '{"sha256":"'
_BODY = len(_HEAD) + 64 + len('",')


def point_key(parameters: Mapping[str, Any], code: str) -> str:
    """Return the key under which a point is stored.

    Examples
    --------
    >>> point_key({"seed": 1}, "aa") == point_key({"seed": 1}, "bb")
    False
    """
    return digest(f"{canonical(parameters)}{code}")


@dataclass(frozen=True)
class Record:
    """A computed point.

    Parameters
    ----------
    parameters : dict
        The point's parameters.
    code : str
        Fingerprint of the code that computed it.
    values : dict
        Plain numbers or nested lists by name of the variable.
    notes : dict
        What the method says about its result, as plain values.
    versions : dict
        Versions of Python and of the libraries that computed it.
    """

    parameters: dict[str, Any]
    code: str
    values: dict[str, Any]
    notes: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Key under which the point is stored."""
        return point_key(self.parameters, self.code)


def encode(record: Record, seconds: float | None = None) -> str:
    """Write a record as one line of JSON, with a checksum of the rest of the line.

    Parameters
    ----------
    record : Record
        What to write.
    seconds : float, optional
        Time that it took; the store keeps it, files with results never do.
    """
    content: dict[str, Any] = asdict(record)
    if seconds is not None:
        content["seconds"] = seconds
    body = canonical(content)[1:]
    return f'{_HEAD}{hashlib.sha256(body.encode()).hexdigest()}",{body}\n'


def decode(line: str) -> Record | None:
    """Read a line written by :func:`encode`; None if it is torn, damaged or foreign.

    Examples
    --------
    >>> record = Record({"seed": 1}, "aa", {"sojourn_mean": 1.5})
    >>> decode(encode(record)) == record
    True
    >>> decode(encode(record)[:-9]) is None
    True
    """
    body = line[_BODY:].rstrip("\n")
    checksum = hashlib.sha256(body.encode(errors="surrogatepass")).hexdigest()
    if line[:_BODY] != f'{_HEAD}{checksum}",':
        return None
    try:
        content = json.loads("{" + body)
        content.pop("seconds", None)
        return Record(**content)
    except (ValueError, TypeError, AttributeError):
        return None


def record_of(point: Point, result: Any, versions: dict[str, str]) -> Record:
    """Turn the dataset that a method returned into a record.

    Raises
    ------
    ArithmeticError
        If the result has no finite mean sojourn time.
    """
    values = {str(name): _known(result[name].values).tolist() for name in result.data_vars}
    # A result without values has a status that says why.
    impossible = not values and "status" in result.attrs
    if not impossible and not math.isfinite(values.get("sojourn_mean", math.nan)):
        raise ArithmeticError("the result has no finite sojourn_mean")
    notes = {str(name): _plain(value) for name, value in result.attrs.items()}
    return Record(point.parameters, point.code, values, notes, versions)


def _known(values: Any) -> np.ndarray:
    """Cut off the end of every axis along which nothing is known."""
    array = np.asarray(values)
    if array.ndim == 0 or array.dtype.kind != "f":
        return array
    there = np.argwhere(~np.isnan(array))
    ends = there.max(axis=0) + 1 if there.size else np.zeros(array.ndim, dtype=int)
    return array[tuple(slice(0, end) for end in ends)]


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
