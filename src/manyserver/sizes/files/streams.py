"""Text files as lines: compression, encoding, and what is no text."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO, TextIO, cast

__all__ = ["ALLOWED", "Lines", "encoding_of", "opened"]

ALLOWED = (
    "must be text with columns (CSV or the like, in UTF-8, in UTF-16 with a byte order mark, or in "
    "Windows-1252, perhaps compressed by gzip, bzip2, xz, or zip with one file), Parquet, or NetCDF"
)
BYTE_ORDER_MARKS = {
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")
HEAD = 2**16
LONGEST_LINE = 2**20


@contextmanager
def opened(path: Path, where: str) -> Iterator[IO[bytes]]:
    """Open a file that may be compressed.

    Raises
    ------
    ValueError
        If it is a zip file, of a spreadsheet perhaps, that does not hold just one file.
    """
    import bz2
    import gzip
    import lzma
    import zipfile

    with path.open("rb") as raw:
        head = raw.read(6)
        raw.seek(0)
        if head.startswith(b"PK\x03\x04"):
            with zipfile.ZipFile(raw) as archive:
                members = [member for member in archive.infolist() if not member.is_dir()]
                if len(members) != 1:
                    raise ValueError(f"{where}: holds {len(members)} files; {ALLOWED}")
                with archive.open(members[0]) as stream:
                    yield stream
        elif head.startswith(b"\x1f\x8b"):
            with gzip.open(raw) as stream:
                yield cast(IO[bytes], stream)
        elif head.startswith(b"BZh"):
            with bz2.open(raw) as stream:
                yield cast(IO[bytes], stream)
        elif head == b"\xfd7zXZ\x00":
            with lzma.open(raw) as stream:
                yield cast(IO[bytes], stream)
        else:
            yield raw


def encoding_of(path: Path, where: str) -> str:
    """Return the encoding of a text: what its first bytes say, UTF-8, or Windows-1252.

    Raises
    ------
    ValueError
        If it is in none of them, or no text.
    """
    with opened(path, where) as stream:
        head = stream.read(HEAD)
    marked = next((name for mark, name in BYTE_ORDER_MARKS.items() if head.startswith(mark)), None)
    if marked is None and CONTROL.search(head):
        raise ValueError(f"{where}: is no text; {ALLOWED}")
    for encoding in [marked] if marked else ["utf-8", "cp1252"]:
        try:
            with opened(path, where) as stream, TextIOWrapper(stream, encoding) as text:
                while text.read(HEAD):
                    pass
            return encoding
        except UnicodeDecodeError:
            continue
    raise ValueError(f"{where}: is not in {marked or 'UTF-8 or Windows-1252'}; {ALLOWED}")


class Lines:
    """The lines of a text, with blank ones instead of comments where a row begins.

    Attributes
    ----------
    begins : bool
        To be set before the first line of a row: rows can go over several lines.
    """

    def __init__(self, text: TextIO, where: str):
        self._text, self._where = text, where
        self.begins = True

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._text.readline(LONGEST_LINE)
        if not line:
            raise StopIteration
        if len(line) == LONGEST_LINE:
            raise ValueError(f"{self._where}: has a line that is too long; {ALLOWED}")
        blank = self.begins and (line.isspace() or line.lstrip().startswith("#"))
        self.begins = False
        return "\n" if blank else line.rstrip(" \n")
