"""What a point keeps for others of its family, so that they need not begin from nothing."""

import zipfile
import zlib
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import numpy as np

from manyserver.study.storage.store import WriteError
from manyserver.study.whole_files import replacing

__all__ = ["Kept"]

DAMAGE = (OSError, ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""What reading a damaged file may raise."""
CODE = "code"
"""Name of the array that tells the code."""


class Kept:
    """Arrays in a file, such as the replications of a simulation.

    A file that is damaged, or from other code, is as good as none. It must be read and written by
    one process at a time, which the claim of a point ensures.

    Parameters
    ----------
    path : pathlib.Path
        The file; a zip archive with a checksum for every array.
    code : str
        Fingerprint of the code that computes the point.

    Attributes
    ----------
    reused, needed : int
        Pieces of work that were found here, and all that the result rests on; told by the method.
    """

    def __init__(self, path: Path, code: str):
        self.path, self.code = path, code
        self.reused = self.needed = 0

    def load(self) -> dict[str, np.ndarray]:
        """Read the arrays; none if there are none that can be trusted."""
        try:
            with self.path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
                arrays = {
                    # A whole member is read, so that its checksum is looked at.
                    name.removesuffix(".npy"): np.lib.format.read_array(BytesIO(archive.read(name)))
                    for name in archive.namelist()
                }
            return arrays if arrays.pop(CODE).tobytes() == self.code.encode() else {}
        except DAMAGE:
            return {}

    def save(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Replace the arrays in the file.

        Raises
        ------
        WriteError
            If it cannot be written.
        """
        told = {**arrays, CODE: np.frombuffer(self.code.encode(), dtype=np.uint8)}
        try:
            with (
                replacing(self.path) as temporary,
                # Hardly larger than with the default level, and much faster.
                zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
            ):
                for name, values in told.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, values, allow_pickle=False)
        except OSError as error:
            raise WriteError(self.path, error) from error
