"""Clean: points in the store that no study uses."""

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from manyserver.plan import Plan
from manyserver.study.storage.locks import locked, sole_run
from manyserver.study.storage.records import record_from, unseal
from manyserver.study.storage.store import CLAIMS, MODULES, Store, WriteError
from manyserver.study.whole_files import replacing

__all__ = ["Waste", "find_waste", "remove_waste"]


@dataclass
class Waste:
    """What one version of the code of a method has left that no study uses.

    Parameters
    ----------
    folder : pathlib.Path
        Where it lies.
    current : bool
        Whether this is the code of a point that a study uses now.
    points : int
        Number of points.
    size : int
        Bytes.
    seconds : float
        CPU time that the points took.
    """

    folder: Path
    current: bool
    points: int = 0
    size: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        code = "no study has them" if self.current else "computed by other code"
        return (
            f"{self.folder.name}: {self.points} points, {self.size / 1e6:.2f} MB, "
            f"{self.seconds:.0f} s of CPU time; {code}"
        )


@dataclass
class _Used:
    """What studies use: keys by file, and families of points by folder."""

    keys: dict[Path, set[str]] = field(default_factory=lambda: defaultdict(set))
    families: dict[Path, set[str]] = field(default_factory=lambda: defaultdict(set))


def find_waste(plan: Plan, store: Store) -> list[Waste]:
    """List what no study uses, by version of the code.

    Parameters
    ----------
    plan : Plan
        Of all studies that there are.
    store : Store
        The store.
    """
    used = _used(plan, store)
    found = []
    for folder in _folders(store):
        waste = Waste(folder, folder in used.families)
        for path in sorted(folder.glob("*.jsonl")):
            for line in path.read_bytes().splitlines(keepends=True):
                key, seconds = _read(line)
                if key not in used.keys[path]:
                    waste.points += key != ""
                    waste.size += len(line)
                    waste.seconds += seconds
        waste.size += sum(
            path.stat().st_size for path in _side_files(folder, used.families[folder])
        )
        if waste.size:
            found.append(waste)
    return found


def remove_waste(plan: Plan, store: Store) -> None:
    """Remove from the store what no study uses.

    Raises
    ------
    FolderInUse
        If a run is going on.
    WriteError
        If a file cannot be written; what studies use is intact.
    """
    with sole_run(store.folder.parent):
        used = _used(plan, store)
        for folder in _folders(store):
            for path in sorted(folder.glob("*.jsonl")):
                try:
                    _rewrite(path, used.keys[path])
                except OSError as error:
                    raise WriteError(path, error) from error
            for path in _side_files(folder, used.families[folder]):
                path.unlink()
            if not any(folder.glob("*.jsonl")):
                _remove(folder)


def _used(plan: Plan, store: Store) -> _Used:
    used = _Used()
    for name in plan.names:
        for point in plan.study(name).points:
            if not point.left_out:
                path = store.path(point)
                used.keys[path].add(point.key)
                used.families[path.parent].add(point.family)
    return used


def _folders(store: Store) -> list[Path]:
    return sorted(path for path in store.folder.glob("*-*") if path.is_dir())


def _side_files(folder: Path, families: set[str]) -> list[Path]:
    """Files of families that are not in use, named CELL.FAMILY.npz."""
    files = sorted(folder.glob("*.*.npz"))
    return [path for path in files if path.name.split(".")[1] not in families]


def _read(line: bytes) -> tuple[str, float]:
    """Key of the point in a line, empty if it is damaged, and the time that it took."""
    content = unseal(line.decode(errors="surrogateescape"))
    record = None if content is None else record_from(content)
    if content is None or record is None:
        return "", 0.0
    return record.key, float(content.get("seconds", 0.0))


def _rewrite(path: Path, keys: set[str]) -> None:
    """Leave the points with some keys in a file."""
    with locked(path) as stream:
        stream.seek(0)
        lines = stream.readall().splitlines(keepends=True)
        kept = [line for line in lines if _read(line)[0] in keys]
        if not kept:
            path.unlink()
        elif len(kept) < len(lines):
            with replacing(path) as temporary:
                temporary.write_bytes(b"".join(kept))


def _remove(folder: Path) -> None:
    for path in (folder / CLAIMS).glob("*"):
        path.unlink()
    for path in (folder / CLAIMS, folder):
        if path.is_dir():
            (path / MODULES).unlink(missing_ok=True)
            path.rmdir()
