"""Compile functions, and keep their machine code in files that a crash cannot spoil.

Numba trusts what it finds in its cache: a file that is empty or cut short raises an error in every
process that reads it, and machine code with a wrong bit may do anything. Here each file ends with
a checksum of the rest, which numba itself does not mind; one without it is as good as none, so
that the function is compiled again, and the file replaced. Numba also looks at the source of a
function alone, and not at those of other modules that are compiled into it; the checksum covers
all of them.

Only modules with compiled functions import this one, as it imports numba.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import IndexDataCacheFile

__all__ = ["njit"]


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return the decorator ``numba.njit(**options)``; with ``cache=True``, files are checked."""

    def compiled(function: Callable[..., Any]) -> Any:
        found = numba.njit(**options)(function)
        files = getattr(getattr(found, "_cache", None), "_cache_file", None)
        if files is not None:
            files.__class__ = _CheckedFiles
        return found

    return compiled


class _CheckedFiles(IndexDataCacheFile):  # type: ignore[misc]
    """The index and the machine code of one function."""

    def _load_index(self) -> Any:
        return super()._load_index() if _is_whole(self._index_path) else {}

    def _load_data(self, name: str) -> Any:
        path = self._data_path(name)
        if not _is_whole(path):
            # What numba takes for a file that was removed meanwhile.
            raise FileNotFoundError(path)
        return super()._load_data(name)

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[BytesIO]:
        content = BytesIO()
        yield content
        with super()._open_for_write(filepath) as stream:
            stream.write(content.getvalue() + _checksum(content.getvalue()))


def _is_whole(path: str) -> bool:
    try:
        content = Path(path).read_bytes()
    except OSError:
        return False
    size = hashlib.sha256().digest_size
    return content[-size:] == _checksum(content[:-size])


def _checksum(content: bytes) -> bytes:
    return hashlib.sha256(content + _sources()).digest()


@cache
def _sources() -> bytes:
    """Digest all modules of this package that have compiled functions."""
    modules = (path.read_bytes() for path in sorted(Path(__file__).parent.rglob("*.py")))
    compiled = (source for source in modules if b"numba" in source or b"@kernel" in source)
    return hashlib.sha256(b"".join(compiled)).digest()
