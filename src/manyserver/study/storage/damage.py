"""Files of results that are not as they were written, such as after a crash or a full disk."""

import csv
import io
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

from manyserver.study.storage.records import unseal

__all__ = ["DamagedFile", "is_damaged"]


class DamagedFile(ValueError):
    """Raised for a file that is not as it was written."""


def is_damaged(path: Path) -> bool:
    """Whether a file is there, but not whole, as far as its format can tell.

    Lines of units and parts of PNG files have checksums; a cube tells its length; a PDF file and a
    table have an end.
    """
    if path.suffix not in WHOLE:
        return False
    try:
        # Of a cube, which may be large, the beginning is looked at alone.
        with path.open("rb") as stream:
            content = stream.read(60 if path.suffix == ".nc" else -1)
            size = os.fstat(stream.fileno()).st_size
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return not WHOLE[path.suffix](content, size)


def _is_unit(content: bytes, size: int) -> bool:
    lines = content.decode(errors="surrogateescape").splitlines()
    return content.endswith(b"\n") and all(unseal(line) is not None for line in lines)


def _is_hdf5(content: bytes, size: int) -> bool:
    # Superblocks of versions 2 and 3 hold the end of the file at byte 28, of 0 and 1 further on.
    if content[:8] != b"\x89HDF\r\n\x1a\n" or len(content) < 60:
        return False
    place = {0: 40, 1: 44}.get(content[8], 28)
    return struct.unpack_from("<Q", content, place) == (size,)


def _is_png(content: bytes, size: int) -> bool:
    if content[:8] != b"\x89PNG\r\n\x1a\n":
        return False
    place = 8
    while place + 12 <= len(content):
        end = place + 12 + int.from_bytes(content[place : place + 4])
        kind = content[place + 4 : place + 8]
        checksum = zlib.crc32(content[place + 4 : end - 4])
        if checksum != int.from_bytes(content[end - 4 : end]):
            return False
        if kind == b"IEND":
            return end == len(content)
        place = end
    return False


def _is_pdf(content: bytes, size: int) -> bool:
    return content.startswith(b"%PDF-") and content.rstrip().endswith(b"%%EOF")


def _is_table(content: bytes, size: int) -> bool:
    try:
        rows = list(csv.reader(io.StringIO(content.decode(), newline=""), strict=True))
    except (csv.Error, UnicodeDecodeError):
        return False
    return content.endswith(b"\n") and len({len(row) for row in rows}) == 1


WHOLE: dict[str, Callable[[bytes, int], bool]] = {
    ".jsonl": _is_unit,
    ".nc": _is_hdf5,
    ".png": _is_png,
    ".pdf": _is_pdf,
    ".csv": _is_table,
}
"""By suffix, whether the content of a file, and its size, are what they must be."""
