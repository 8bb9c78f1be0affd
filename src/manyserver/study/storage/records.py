"""Records: one computed point as one line of text that proves its own integrity."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manyserver import methods
from manyserver.origin import ORIGIN
from manyserver.study.points import Point, canonical, digest, point_key

__all__ = [
    "FAILED",
    "Record",
    "decode",
    "encode",
    "failed_record",
    "is_failed",
    "record_from",
    "record_of",
    "seal",
    "seal_body",
    "unseal",
]

FAILED = "failed"
"""Status of a point that could not be computed."""
_HEAD = '{"sha256":"'
_BODY = len(_HEAD) + 64 + len('",')


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
    def point_id(self) -> str:
        """Identity of the point."""
        return digest(canonical(self.parameters))

    @property
    def key(self) -> str:
        """Key under which the point is stored."""
        return point_key(self.parameters, self.code)


def seal(content: Mapping[str, Any]) -> str:
    """Write plain values as one line of JSON, with a checksum of the rest of the line."""
    body = canonical(content)[1:]
    return f'{_HEAD}{hashlib.sha256(body.encode()).hexdigest()}",{body}\n'


def unseal(line: str) -> dict[str, Any] | None:
    """Read a line written by :func:`seal`; None if it is torn, damaged or foreign."""
    body = line[_BODY:].rstrip("\n")
    checksum = hashlib.sha256(body.encode(errors="surrogatepass")).hexdigest()
    if line[:_BODY] != f'{_HEAD}{checksum}",':
        return None
    try:
        content = json.loads("{" + body)
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def seal_body(line: str) -> str:
    """Return the JSON text in a line, whether or not its checksum is right."""
    return "{" + line[_BODY:].rstrip("\n")


def encode(record: Record, seconds: float | None = None) -> str:
    """Write a record as one line.

    Parameters
    ----------
    record : Record
        What to write.
    seconds : float, optional
        Time that it took; the store keeps it, files with results never do.
    """
    content: dict[str, Any] = {**vars(record), "id": record.point_id}
    if seconds is not None:
        content["seconds"] = seconds
    return seal(content)


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
    content = unseal(line)
    return None if content is None else record_from(content)


def record_from(content: Mapping[str, Any]) -> Record | None:
    """Turn the values of a line into a record; None if they are not those of one."""
    try:
        told = {key: value for key, value in content.items() if key not in ("id", "seconds")}
        return Record(**told)
    except TypeError:
        return None


def failed_record(point: Point, error: Exception, versions: dict[str, str]) -> Record:
    """Record why a point could not be computed."""
    notes = {"status": FAILED, "reason": f"{type(error).__name__}: {error}"}
    return Record(point.parameters, point.code, {}, notes, versions)


def is_failed(record: Record) -> bool:
    """Whether the record says that the point could not be computed."""
    return record.notes.get("status") == FAILED


def record_of(point: Point, result: Any, versions: dict[str, str]) -> Record:
    """Turn the dataset that a method returned into a record.

    Raises
    ------
    ArithmeticError
        If the result has no finite value of the variable that its method must give.
    """
    values = {str(name): _known(result[name].values).tolist() for name in result.data_vars}
    # A result without values has a status that says why.
    impossible = not values and "status" in result.attrs
    answer = methods.load(point.method).primary_variable
    if not impossible and not math.isfinite(values.get(answer, math.nan)):
        raise ArithmeticError(f"the result has no finite {answer}")
    notes = {str(k): _plain(value) for k, value in result.attrs.items() if k not in ORIGIN}
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
