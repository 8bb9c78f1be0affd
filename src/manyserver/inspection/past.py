"""What is known of points that were computed before under other conditions."""

import json
from pathlib import Path
from typing import Any

from manyserver.study.points import Point
from manyserver.study.storage.records import FAILED, seal_body, unseal
from manyserver.study.storage.store import MODULES, Store

__all__ = ["Past", "failures_in"]

MOST_MODULES = 5
"""Changed modules that are named."""


class Past:
    """Why a point is not in the store, as far as store and cube tell.

    ``fingerprints`` has those that changed, by reason.

    Parameters
    ----------
    store : Store
        The store.
    cube : pathlib.Path
        The cube of the study, if there is one.
    """

    def __init__(self, store: Store, cube: Path):
        self.store = store
        self.cube = cube
        self._cells: dict[tuple[str, str], list[tuple[str, dict[str, Any], bool]]] = {}
        self._failed: dict[str, str] | None = None
        self.fingerprints: dict[str, set[str]] = {}

    def reason(self, point: Point) -> str:
        """Say why a point is to be computed; empty if it is new."""
        here = self.store.path(point).parent.name
        known = self._cell(point)
        same = [(code, intact) for code, told, intact in known if told == point.parameters]
        if any(code == here and not intact for code, intact in same):
            return "damaged in the store"
        if point.id in self._failures():
            return f"failed before: {self._failures()[point.id]}"
        old = sorted({code for code, intact in same if code != here and intact})
        if old:
            return self._code_change(point, old[-1])
        for key in ("options", "seed"):
            rest = {**point.parameters, key: None}
            for _, told, _ in reversed(known):
                if {**told, key: None} == rest:
                    return f"{key} changed: {_change(told[key], point.parameters[key])}"
        return ""

    def _cell(self, point: Point) -> list[tuple[str, dict[str, Any], bool]]:
        """Points of the same cell under any code: folder, parameters, whether intact."""
        cell = (point.method, point.cell)
        if cell not in self._cells:
            files = self.store.folder.glob(f"{point.method}-*/{point.cell}.jsonl")
            self._cells[cell] = [
                found
                for file in sorted(files, key=lambda file: file.stat().st_mtime)
                for line in file.read_text(errors="surrogateescape").splitlines()
                if (found := _told(file.parent.name, line)) is not None
            ]
        return self._cells[cell]

    def _code_change(self, point: Point, old: str) -> str:
        try:
            modules = dict(json.loads((self.store.folder / old / MODULES).read_text()))
        except (OSError, TypeError, ValueError):
            modules = {}
        now = point.modules
        changed = sorted(name for name in {*modules, *now} if modules.get(name) != now.get(name))
        shown = ", ".join(changed[:MOST_MODULES]) + (", ..." if changed[MOST_MODULES:] else "")
        reason = f"of {point.method}: its code changed" + (f", {shown}" if modules else "")
        before = old.removeprefix(f"{point.method}-")
        self.fingerprints.setdefault(reason, set()).add(f"{before} -> {point.code}")
        return reason

    def _failures(self) -> dict[str, str]:
        if self._failed is None:
            self._failed = failures_in(self.cube)
        return self._failed


def _told(folder: str, line: str) -> tuple[str, dict[str, Any], bool] | None:
    content = unseal(line)
    intact = content is not None
    if content is None:
        # What is damaged often still tells which point it was.
        try:
            content = json.loads(seal_body(line))
        except ValueError:
            return None
    told = content.get("parameters") if isinstance(content, dict) else None
    return (folder, told, intact) if isinstance(told, dict) else None


def failures_in(cube: Path) -> dict[str, str]:
    """Return the reason of every point in a cube that failed, by its id."""
    if not cube.exists():
        return {}
    # Without xarray, which takes longer to import than all else here takes.
    import netCDF4

    try:
        with netCDF4.Dataset(cube) as data:
            if not {"status", "reason", "point_id"} <= set(data.variables):
                return {}
            failed = data["status"][:] == FAILED
            ids, reasons = data["point_id"][:][failed], data["reason"][:][failed]
            return {str(key): str(why) for key, why in zip(ids, reasons, strict=True)}
    except (OSError, RuntimeError):  # a damaged file
        return {}


def _change(old: Any, new: Any) -> str:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return f"{old} -> {new}"
    keys = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
    return ", ".join(
        f"{key} {old.get(key, 'default')} -> {new.get(key, 'default')}" for key in keys
    )
