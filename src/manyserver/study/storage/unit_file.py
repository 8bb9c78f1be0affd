"""The file of a unit: a line that says what it holds, and one for each of its points."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from manyserver.study.points import Unit
from manyserver.study.storage.damage import DamagedFile
from manyserver.study.storage.records import Record, encode, is_failed, record_from, seal, unseal
from manyserver.study.storage.store import WriteError
from manyserver.study.whole_files import replacing

__all__ = ["Header", "expected_header", "read_header", "read_unit", "write_unit"]


@dataclass(frozen=True)
class Header:
    """What a unit's file holds.

    Parameters
    ----------
    points : str
        Number of the points and digest of their identities.
    code : str
        Digest of the code that computed them.
    failed : int
        Number of points that could not be computed.
    """

    points: str
    code: str
    failed: int = 0


def expected_header(unit: Unit) -> Header:
    """Return the header that the file of a unit has if nothing fails."""
    return Header(unit.summary, unit.code)


def write_unit(path: Path, unit: Unit, records: Iterable[Record]) -> None:
    """Write the file of a unit, moved into place when it is whole.

    Raises
    ------
    WriteError
        If it cannot be written.
    """
    kept = list(records)
    header = Header(unit.summary, unit.code, sum(is_failed(record) for record in kept))
    try:
        with replacing(path) as temporary:
            temporary.write_text("".join([seal(asdict(header)), *(encode(r) for r in kept)]))
    except OSError as error:
        raise WriteError(path, error) from error


def read_header(path: Path) -> Header | None:
    """Read the first line of a unit's file; None if there is none, or it is damaged."""
    try:
        with path.open(encoding="utf-8", errors="surrogateescape") as lines:
            content = unseal(lines.readline())
        return None if content is None else Header(**content)
    except (OSError, TypeError):
        return None


def read_unit(path: Path) -> list[Record]:
    """Read the points in a unit's file.

    Raises
    ------
    DamagedFile
        If a line is damaged.
    """
    records = []
    with path.open(encoding="utf-8", errors="surrogateescape") as lines:
        for number, line in enumerate(lines, start=1):
            content = unseal(line)
            if content is not None and number == 1 and "parameters" not in content:
                continue
            record = None if content is None else record_from(content)
            if record is None:
                raise DamagedFile(f"{path}: line {number} is damaged; the next run makes it again")
            records.append(record)
    return records
