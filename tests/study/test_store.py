import json
import threading
from pathlib import Path
from typing import Any

import pytest

from manyserver.study.points import Point
from manyserver.study.records import Record, decode, encode
from manyserver.study.store import Store, replacing
from manyserver.study.sweep import read_study


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


def test_one_writer_at_a_time(tmp_path: Path, points: tuple[Point, ...]) -> None:
    events: list[str] = []
    first, second = Store(tmp_path / "points"), Store(tmp_path / "points")
    tried = threading.Event()

    def write() -> None:
        with second.writing(points[1], wait=False) as held:
            events.append(f"second: {held}")
        tried.set()
        with second.writing(points[1], wait=True) as held:
            events.append(f"second: {held}")

    with first.writing(points[0], wait=False) as held:
        thread = threading.Thread(target=write)
        thread.start()
        assert tried.wait(timeout=10)
        events.append(f"first: {held}")
    thread.join()
    assert events == ["second: False", "first: True", "second: True"]


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "a.txt"
    with pytest.raises(ZeroDivisionError), replacing(path) as temporary:
        temporary.write_text("half")
        _ = 1 / 0
    assert list(path.parent.iterdir()) == []
