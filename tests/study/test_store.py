import errno
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from manyserver.study.points import Point
from manyserver.study.storage.locks import locked
from manyserver.study.storage.records import Record, decode, encode
from manyserver.study.storage.store import Store, WriteError
from manyserver.study.study import read_study
from manyserver.study.whole_files import replacing


def record(point: Point, value: float = 1.5) -> Record:
    return Record(point.parameters, point.code, {"sojourn_mean": value})


@pytest.fixture
def points(write_study: Any) -> tuple[Point, ...]:
    return read_study(write_study()).points


@pytest.fixture
def store(tmp_path: Path, points: tuple[Point, ...]) -> Store:
    """A store with two points of one cell."""
    store = Store(tmp_path / "points")
    for point in points[:2]:
        store.append(point, record(point), seconds=0.5)
    return store


def test_points_are_found_again(store: Store, points: tuple[Point, ...]) -> None:
    assert store.find(points) == {point.id: record(point) for point in points[:2]}
    assert store.damaged == 0


def test_nothing_is_found_in_no_store(tmp_path: Path, points: tuple[Point, ...]) -> None:
    assert Store(tmp_path / "nowhere").find(points) == {}


def test_every_line_is_json_with_the_time_it_took(store: Store, points: tuple[Point, ...]) -> None:
    lines = store.path(points[0]).read_text().splitlines()
    assert [json.loads(line)["seconds"] for line in lines] == [0.5, 0.5]


def damage_truncated(text: str) -> str:
    return text[:-30]


def damage_flipped(text: str) -> str:
    return text.replace('"sojourn_mean":1.5', '"sojourn_mean":1.4')


def damage_not_text(text: str) -> str:
    return "\udcff\udcfe" + text[2:]


def damage_other(text: str) -> str:
    return '{"sojourn_mean": 3}\n'


def damage_empty(text: str) -> str:
    return "\n"


DAMAGES = [damage_truncated, damage_flipped, damage_not_text, damage_other, damage_empty]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_line_is_ignored_and_costs_no_other(
    store: Store, points: tuple[Point, ...], damage: Any
) -> None:
    path = store.path(points[0])
    first, last = path.read_text().splitlines(keepends=True)
    path.write_text(first + damage(last), errors="surrogateescape")
    assert store.find(points) == {points[0].id: record(points[0])}
    assert store.damaged == 1
    store.append(points[1], record(points[1]), seconds=0.5)
    assert set(store.find(points)) == {points[0].id, points[1].id}


def test_every_flipped_bit_is_noticed(points: tuple[Point, ...]) -> None:
    line = encode(record(points[0]), seconds=0.5)
    content = line.encode()
    for place in range(len(content) - 1):
        flipped = bytearray(content)
        flipped[place] ^= 1
        assert decode(flipped.decode(errors="surrogateescape")) is None


def test_a_record_of_another_point_is_never_an_answer(
    store: Store, points: tuple[Point, ...]
) -> None:
    foreign = store.path(points[0])
    here = store.path(points[2])
    assert here != foreign
    here.parent.mkdir()
    here.write_text(foreign.read_text())
    assert points[2].id not in store.find(points)
    assert store.damaged == 0


def test_a_record_of_other_code_is_never_an_answer(store: Store, points: tuple[Point, ...]) -> None:
    old = Record(points[2].parameters, "0" * 16, {"sojourn_mean": 2.0})
    store.append(points[2], old, seconds=0.5)
    assert points[2].id not in store.find(points)


def test_many_threads_append_whole_lines(tmp_path: Path, points: tuple[Point, ...]) -> None:
    store = Store(tmp_path / "points")

    def fill(value: float) -> None:
        for _ in range(50):
            store.append(points[0], record(points[0], value), seconds=0.0)

    threads = [threading.Thread(target=fill, args=(value,)) for value in (1.0, 2.0, 3.0, 4.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.path(points[0]).read_text().splitlines()) == 200
    store.find(points)
    assert store.damaged == 0


def test_a_point_is_claimed_once(tmp_path: Path, points: tuple[Point, ...]) -> None:
    events: list[str] = []
    first, second = Store(tmp_path / "points"), Store(tmp_path / "points")
    tried = threading.Event()

    def work() -> None:
        with second.claim(points[1]) as held:
            events.append(f"other point: {held}")
        with second.claim(points[0]) as held:
            events.append(f"second: {held}")
        tried.set()
        with second.claim(points[0], wait=True) as held:
            events.append(f"second: {held}")

    with first.claim(points[0]) as held:
        thread = threading.Thread(target=work)
        thread.start()
        assert tried.wait(timeout=10)
        events.append(f"first: {held}")
    thread.join()
    assert events == ["other point: True", "second: False", "first: True", "second: True"]
    assert list(tmp_path.rglob("claims/*")) == []


def test_what_others_add_is_news_once(store: Store, points: tuple[Point, ...]) -> None:
    mine = Store(store.folder)
    assert len(mine.find(points)) == 2
    assert mine.news(points[0]) == []
    store.append(points[1], record(points[1], 2.5), seconds=0.5)
    assert mine.news(points[0]) == [record(points[1], 2.5)]
    assert mine.news(points[0]) == []
    mine.append(points[1], record(points[1], 3.5), seconds=0.5)
    assert mine.news(points[0]) == []


def test_a_line_that_is_still_being_written_is_read_later(
    store: Store, points: tuple[Point, ...]
) -> None:
    mine = Store(store.folder)
    mine.find(points)
    line = encode(record(points[1], 2.5), seconds=0.5)
    path = store.path(points[1])
    with path.open("a") as stream:
        stream.write(line[:50])
    assert mine.news(points[1]) == []
    with path.open("a") as stream:
        stream.write(line[50:])
    assert mine.news(points[1]) == [record(points[1], 2.5)]
    assert mine.damaged == 0


def test_the_modules_of_the_code_are_told_beside_it(
    store: Store, points: tuple[Point, ...]
) -> None:
    told = json.loads(store.path(points[0]).with_name("code.json").read_text())
    assert told == points[0].modules
    assert "manyserver.methods.mean_field" in told


def test_a_disk_that_is_full_leaves_the_store_as_it_was(
    store: Store, points: tuple[Point, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = store.path(points[0]).read_bytes()
    write = os.write

    def half(descriptor: int, line: bytes) -> int:
        write(descriptor, line[: len(line) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.write", half)
    with pytest.raises(WriteError, match="No space left on device"):
        store.append(points[1], record(points[1], 2.5), seconds=0.5)
    assert store.path(points[0]).read_bytes() == before


def test_a_file_that_is_replaced_loses_no_line(store: Store, points: tuple[Point, ...]) -> None:
    # As `clean` does it: lock, write anew, move into place; meanwhile another process appends.
    path = store.path(points[0])
    with locked(path) as stream:
        thread = threading.Thread(
            target=store.append, args=(points[1], record(points[1], 2.5), 0.5)
        )
        thread.start()
        stream.seek(0)
        with replacing(path) as temporary:
            temporary.write_bytes(stream.readall())
    thread.join()
    assert len(path.read_text().splitlines()) == 3


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "a.txt"
    with pytest.raises(ZeroDivisionError), replacing(path) as temporary:
        temporary.write_text("half")
        _ = 1 / 0
    assert list(path.parent.iterdir()) == []
