from pathlib import Path

import numpy as np
import pytest

from manyserver.study.storage.kept import Kept
from manyserver.study.storage.store import WriteError

ARRAYS = {"numbers": np.arange(40.0).reshape(4, 10), "words": np.arange(3, dtype=np.uint8)}


def equal(one: dict[str, np.ndarray]) -> bool:
    return set(one) == set(ARRAYS) and all(
        (values == ARRAYS[name]).all() and values.dtype == ARRAYS[name].dtype
        for name, values in one.items()
    )


def test_arrays_come_back(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "folder" / "a.npz", "code")
    assert kept.load() == {}
    kept.save(ARRAYS)
    assert equal(kept.load())
    assert [path.name for path in kept.path.parent.iterdir()] == ["a.npz"]
    assert Kept(kept.path, "other").load() == {}


def test_a_damaged_file_is_as_good_as_none(tmp_path: Path) -> None:
    """Every byte flipped, and every length; what still can be read is right."""
    kept = Kept(tmp_path / "a.npz", "code")
    kept.save(ARRAYS)
    whole = kept.path.read_bytes()
    ignored = 0
    for place in range(len(whole)):
        kept.path.write_bytes(whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :])
        found = kept.load()
        assert found == {} or equal(found), place
        ignored += found == {}
    assert ignored > len(whole) / 2
    for place in range(0, len(whole), 7):
        kept.path.write_bytes(whole[:place])
        assert kept.load() == {}
    kept.path.write_text("foreign")
    assert kept.load() == {}
    kept.path.unlink()
    np.savez(kept.path, numbers=np.zeros(2))
    assert kept.load() == {}


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(WriteError, match="cannot write"):
        Kept(tmp_path / "file" / "a.npz", "code").save(ARRAYS)
