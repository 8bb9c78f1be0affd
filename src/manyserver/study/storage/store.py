"""The store: every point ever computed, by its key, in append-only files.

Points of one cell (method, pools, policy and number of servers) computed by one version of the
code share a file, ``points/METHOD-CODE/CELL.jsonl``. A process claims a point before it computes
it and locks a file while it appends to it; both end with the process. A line that is torn,
damaged or foreign is ignored, so its point is computed again.

Beside them ``code.json`` lists the modules that the code consists of, and ``CELL.FAMILY.npz`` is
what points of one family, which differ in precision, say, have kept to start from.
"""

import json
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from manyserver.study.points import Point
from manyserver.study.storage.locks import claimed, locked
from manyserver.study.storage.records import Record, decode, encode
from manyserver.study.whole_files import replacing

__all__ = ["CLAIMS", "MODULES", "Store", "WriteError"]

CLAIMS = "claims"
"""Folder of the claims of one version of the code."""
MODULES = "code.json"
"""File with the modules of one version of the code, and a digest of each."""


class WriteError(Exception):
    """Raised when a file cannot be written; what was stored before is intact."""

    def __init__(self, path: Path, error: OSError):
        super().__init__(
            f"cannot write {path}: {error.strerror}. All points stored so far are intact: "
            "make room and run again."
        )


class Store:
    """Computed points on disk.

    Parameters
    ----------
    folder : pathlib.Path
        Where the files lie; made when the first point is appended.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self._damaged: set[tuple[Path, int]] = set()
        self._read_to: dict[Path, int] = {}
        self._append = threading.Lock()

    @property
    def damaged(self) -> int:
        """Number of lines that were ignored so far."""
        return len(self._damaged)

    def path(self, point: Point) -> Path:
        """File that holds the point, whether or not it is there yet."""
        return self.folder / f"{point.method}-{point.code}" / f"{point.cell}.jsonl"

    def side_file(self, point: Point) -> Path:
        """File for what the family of a point keeps."""
        path = self.path(point)
        return path.with_name(f"{path.stem}.{point.family}.npz")

    def find(self, points: Iterable[Point]) -> dict[str, Record]:
        """Return the stored records of some points, by the id of the point."""
        wanted: dict[Path, dict[str, str]] = {}
        for point in points:
            wanted.setdefault(self.path(point), {})[point.key] = point.id
        found: dict[str, Record] = {}
        for path, ids in wanted.items():
            for record in self._read(path, 0):
                if record.key in ids:
                    found[ids[record.key]] = record
        return found

    def news(self, point: Point) -> list[Record]:
        """Return what other processes have added to the file of a point since it was read."""
        path = self.path(point)
        return list(self._read(path, self._read_to.get(path, 0)))

    def _read(self, path: Path, start: int) -> Iterator[Record]:
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            return
        if size <= start:
            return
        with path.open("rb") as lines:
            place = lines.seek(start)
            for line in lines:
                record = decode(line.decode(errors="surrogateescape"))
                if record is not None:
                    yield record
                elif start == 0 or line.endswith(b"\n"):
                    self._damaged.add((path, place))
                if not line.endswith(b"\n"):
                    # Torn by a crash, or still being written: it is looked at again.
                    break
                place += len(line)
        self._read_to[path] = place

    def append(self, point: Point, record: Record, seconds: float) -> None:
        """Add a point; a crash leaves the others as they were.

        Raises
        ------
        WriteError
            If it cannot be written; then nothing of it is.
        """
        line = encode(record, seconds).encode()
        path = self.path(point)
        try:
            with self._append, locked(path) as stream:
                self._tell_modules(point)
                end = stream.seek(0, os.SEEK_END)
                if end:
                    stream.seek(-1, os.SEEK_END)
                    # A line torn by a crash must not swallow this one.
                    line = line if stream.read(1) == b"\n" else b"\n" + line
                try:
                    _write_all(stream.fileno(), line)
                except OSError:
                    stream.truncate(end)
                    raise
                if self._read_to.get(path, 0) == end:
                    self._read_to[path] = end + len(line)
        except OSError as error:
            raise WriteError(path, error) from error

    def _tell_modules(self, point: Point) -> None:
        path = self.path(point).with_name(MODULES)
        if not path.exists():
            with replacing(path) as temporary:
                temporary.write_text(json.dumps(point.modules, indent=1, sort_keys=True) + "\n")

    @contextmanager
    def claim(self, point: Point, wait: bool = False) -> Iterator[bool]:
        """Keep other processes from computing a point meanwhile, or one of its family.

        Parameters
        ----------
        point : Point
            The point.
        wait : bool, optional
            Whether to wait for a process that computes it.

        Yields
        ------
        bool
            Whether the point is claimed.

        Raises
        ------
        WriteError
            If that cannot be noted on the disk.
        """
        path = self.path(point).parent / CLAIMS / point.family
        with ExitStack() as stack:
            try:
                held = stack.enter_context(claimed(path, wait))
            except OSError as error:
                raise WriteError(path, error) from error
            yield held


def _write_all(descriptor: int, line: bytes) -> None:
    while line:
        line = line[os.write(descriptor, line) :]
