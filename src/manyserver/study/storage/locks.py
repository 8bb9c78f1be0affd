"""Locks that end with the process that holds them, so that a crash leaves none behind."""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO, IOBase
from pathlib import Path

__all__ = ["FolderInUse", "claimed", "locked", "sole_run"]

POLL_SECONDS = 0.01
"""Time between two attempts to lock a file."""


class FolderInUse(Exception):
    """Raised when another run builds the same results."""


def _lock(stream: IOBase, wait: bool) -> bool:
    """Lock an open file until it is closed, at the latest by the end of the process.

    Returns
    -------
    bool
        Whether it is locked; false if another process has it and waiting is not wanted.
    """
    # Imported here as it takes longer than reading a study.
    from filelock import lock_descriptor

    return lock_descriptor(stream.fileno(), blocking=wait, poll_interval=POLL_SECONDS)


@contextmanager
def locked(path: Path) -> Iterator[FileIO]:
    """Open a file for reading and appending while no other process does.

    Yields
    ------
    io.FileIO
        Unbuffered; the file is made if there is none.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with path.open("ab+", buffering=0) as stream:
            _lock(stream, wait=True)
            # Another process may have put a new file in its place meanwhile.
            if _is_at(stream, path):
                yield stream
                return


@contextmanager
def claimed(path: Path, wait: bool) -> Iterator[bool]:
    """Claim what a file stands for; the file lasts as long as the claim.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    wait : bool
        Whether to wait for a process that has the claim.

    Yields
    ------
    bool
        Whether it is claimed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with path.open("ab", buffering=0) as stream:
            if not _lock(stream, wait):
                yield False
                return
            if not _is_at(stream, path):
                continue
            try:
                yield True
            finally:
                path.unlink(missing_ok=True)
            return


def _is_at(stream: FileIO, path: Path) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(stream.fileno()), there)


@contextmanager
def sole_run(folder: Path) -> Iterator[None]:
    """Be the only run that builds the results in a folder.

    Raises
    ------
    FolderInUse
        If there is another one; the message says which.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a+", errors="replace") as stream:
        if not _lock(stream, wait=False):
            stream.seek(0)
            raise FolderInUse(
                f"{folder}: another run builds these results ({stream.read().strip()}); "
                "wait until it has ended, or stop it"
            )
        stream.truncate(0)
        began = time.strftime("%Y-%m-%d %H:%M:%S")
        stream.write(f"process {os.getpid()} on {socket.gethostname()} since {began}")
        stream.flush()
        yield
