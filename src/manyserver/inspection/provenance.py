"""Provenance: what a file was made from, by whom and with what."""

import csv
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from manyserver.study.storage.damage import is_damaged
from manyserver.study.storage.records import Record, is_failed, record_from, unseal
from manyserver.version import __version__

__all__ = ["UnknownFile", "built_from", "is_current", "provenance", "stamp", "table_stamp"]


class UnknownFile(Exception):
    """Raised for a file that does not say where it comes from."""


def provenance(path: Path) -> dict[str, Any]:
    """Return what a unit's file, a file of the store, a cube, a figure or a table of fits says.

    Raises
    ------
    UnknownFile
        If it says nothing.
    """
    readers = {
        ".jsonl": _of_records,
        ".nc": _of_cube,
        ".png": _of_png,
        ".pdf": _of_pdf,
        ".csv": _of_table,
    }
    if path.suffix not in readers:
        raise UnknownFile(f"{path}: must be one of {', '.join(f'*{suffix}' for suffix in readers)}")
    if path.exists() and not path.is_file():
        raise UnknownFile(f"{path}: is a folder, a device or a pipe; must be a file")
    if is_damaged(path) and path.suffix != ".jsonl":
        raise UnknownFile(f"{path}: is damaged")
    try:
        found = readers[path.suffix](path)
    except FileNotFoundError:
        raise UnknownFile(f"{path}: there is no such file") from None
    except (OSError, RuntimeError, ValueError):
        found = {}
    if not found:
        raise UnknownFile(f"{path}: does not say where it comes from")
    return found


def built_from(path: Path) -> str | None:
    """Return the digests of the settings and the code that made a file; None if it has none."""
    try:
        return str(provenance(path)["built_from"])
    except (UnknownFile, KeyError):
        return None


def is_current(path: Path, cube: Path, told: Mapping[str, str]) -> bool:
    """Whether a file says just that of itself, and is not older than its cube.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    cube : pathlib.Path
        The cube.
    told : mapping
        What :func:`stamp` returned for it, and more.
    """
    try:
        newer = path.stat().st_mtime_ns >= cube.stat().st_mtime_ns
        return newer and provenance(path) == told
    except (OSError, UnknownFile):
        return False


def stamp(study: str, cube: Path, digests: str) -> dict[str, str]:
    """Return what a file that is made from a cube says of itself.

    Parameters
    ----------
    study : str
        Its name.
    cube : pathlib.Path
        The cube.
    digests : str
        Of the settings and the code.
    """
    return {
        "study": study,
        "source": f"manyserver {__version__}",
        "built_from": digests,
        "cube_sha256": hashlib.sha256(cube.read_bytes()).hexdigest(),
    }


def table_stamp(study: str, cube: Path, digests: str) -> str:
    """Return the same as a text that fits into a column of a table."""
    return "; ".join(f"{key} {value}" for key, value in stamp(study, cube, digests).items())


def _of_records(path: Path) -> dict[str, Any]:
    header: dict[str, Any] = {}
    records: list[Record] = []
    damaged = 0
    for line in path.read_text(errors="surrogateescape").splitlines():
        content = unseal(line)
        record = None if content is None else record_from(content)
        if record is not None:
            records.append(record)
        elif content is not None:
            header = content
        else:
            damaged += 1
    if not records and not header:
        return {}
    return {
        **header,
        "damaged_lines": damaged,
        "code_fingerprints": _gathered((r.parameters["method"], r.code) for r in records),
        "library_versions": _gathered(item for r in records for item in r.versions.items()),
        "points": [
            {
                "id": record.point_id,
                **record.parameters,
                "status": record.notes.get("status", "failed" if is_failed(record) else "ok"),
            }
            for record in records
        ],
    }


def _gathered(pairs: Iterator[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, set[str]] = {}
    for name, value in pairs:
        found.setdefault(name, set()).add(value)
    return {name: sorted(values) for name, values in sorted(found.items())}


def _of_cube(path: Path) -> dict[str, Any]:
    import netCDF4

    with netCDF4.Dataset(path) as cube:
        found = {name: _parsed(cube.getncattr(name)) for name in cube.ncattrs()}
        if "status" in cube.variables:
            found["points_by_status"] = dict(Counter(cube["status"][:].ravel().tolist()))
    return found


def _of_png(path: Path) -> dict[str, Any]:
    from PIL import Image

    with Image.open(path) as image:
        return dict(json.loads(image.info["Comment"])) if "Comment" in image.info else {}


def _of_pdf(path: Path) -> dict[str, Any]:
    found = re.search(rb"/Keywords \(((?:[^()\\]|\\.)*)\)", path.read_bytes(), re.DOTALL)
    if found is None:
        return {}
    text = re.sub(rb"\\(.)", rb"\1", found[1], flags=re.DOTALL)
    return dict(json.loads(text.decode("latin-1")))


def _of_table(path: Path) -> dict[str, Any]:
    with path.open(newline="") as rows:
        text = next(csv.DictReader(rows), {}).get("provenance", "")
    parts = (part.partition(" ") for part in text.split("; ") if part)
    return {key: value for key, _, value in parts}


def _parsed(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) and value[:1] in "{[" else value
    except ValueError:
        return value
