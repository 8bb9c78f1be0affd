"""The store: every point ever computed, by its key, in append-only files.

Points of one cell (method, pools, policy and number of servers) computed by one version of the
code share a file. One process at a time writes it, under a lock that ends with the process. A
line that is torn, damaged or foreign is ignored, so its point is computed again.
"""

import fcntl
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from manyserver.study.points import Point
from manyserver.study.records import Record, decode, encode, point_key

__all__ = ["Store", "replacing"]


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
        self._append = threading.Lock()

    @property
    def damaged(self) -> int:
        """Number of lines that were ignored so far."""
        return len(self._damaged)

    def path(self, point: Point) -> Path:
        """File that holds the point, whether or not it is there yet."""
        return self.folder / f"{point.method}-{point.code}" / f"{point.cell}.jsonl"

    def find(self, points: Iterable[Point]) -> dict[str, Record]:
        """Return the stored records of some points, by the id of the point."""
        wanted: dict[Path, dict[str, str]] = {}
        for point in points:
            key = point_key(point.parameters, point.code)
            wanted.setdefault(self.path(point), {})[key] = point.id
        found: dict[str, Record] = {}
        for path, ids in wanted.items():
            for record in self._read(path):
                if record.key in ids:
                    found[ids[record.key]] = record
        return found

    def _read(self, path: Path) -> Iterator[Record]:
        if not path.exists():
            return
        with path.open(encoding="utf-8", errors="surrogateescape") as lines:
            for number, line in enumerate(lines):
                record = decode(line)
                if record is None:
                    self._damaged.add((path, number))
                else:
                    yield record

    def append(self, point: Point, record: Record, seconds: float) -> None:
        """Add a point; a crash leaves the others as they were."""
        line = encode(record, seconds).encode()
        path = self.path(point)
        with self._append:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab+") as stream:
                if stream.seek(0, os.SEEK_END):
                    stream.seek(-1, os.SEEK_END)
                    # A line torn by a crash must not swallow this one.
                    line = line if stream.read(1) == b"\n" else b"\n" + line
                stream.write(line)

    @contextmanager
    def writing(self, point: Point, wait: bool) -> Iterator[bool]:
        """Keep other processes from computing the cell of a point meanwhile.

        Parameters
        ----------
        point : Point
            Any point of the cell. A process holds one cell at a time, so none waits for ever.
        wait : bool
            Whether to wait for a process that holds the cell.

        Yields
        ------
        bool
            Whether the cell is held.
        """
        path = self.path(point).with_suffix(".lock")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
            else:
                yield True


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`, and move it into place if nothing was raised.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "a.txt"
    >>> with replacing(target) as temporary:
    ...     _ = temporary.write_text("whole")
    >>> target.read_text()
    'whole'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
