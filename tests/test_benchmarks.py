"""The driver of the benchmarks: what it measures, keeps, shows, and finds changed."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from benchmarks import command
from benchmarks.driver import Benchmark, Row, benchmark, comparison, in_turns
from click.testing import CliRunner


@benchmark("size", costs=["ns", "seconds"])
def trivial(quick: bool) -> Iterator[Row]:
    """Sums.

    CPU time of a sum.
    """
    for size in (10, 1000):
        spent = in_turns({"sum": partial(sum, range(size))}, 2 if quick else 4)["sum"]
        yield {"size": size, "ns": [1e9 * one + 1 for one in spent], "seconds": 2.5, "why": None}


def test_runs_take_turns_after_one_that_does_not_count() -> None:
    order: list[str] = []
    spent = in_turns({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 2)
    assert "".join(order) == "ababab"
    assert {name: len(times) for name, times in spent.items()} == {"a": 2, "b": 2}


def test_time_can_be_that_of_a_unit_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 1.0, 9.0])
    monkeypatch.setattr("time.thread_time", lambda: next(clock))
    assert in_turns({"a": lambda: 4.0}, 1, per_unit=True) == {"a": [2.0]}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CliRunner:
    """Of the trivial benchmark, and of one that needs a package that is not there."""

    @benchmark("nothing")
    def elsewhere(quick: bool) -> list[Row]:
        """Nothing."""
        raise ModuleNotFoundError("No module named 'elsewhere'")

    found = {one.name: one for one in (elsewhere, trivial)}
    monkeypatch.setattr(command, "found", lambda: found)
    monkeypatch.chdir(tmp_path)
    return CliRunner()


def test_a_run_keeps_its_measurements_and_a_page_of_tables(run: CliRunner) -> None:
    told = run.invoke(command.main, ["--results", "kept.json"], catch_exceptions=False)
    assert told.exit_code == 0
    assert "is left out: No module named 'elsewhere'" in told.output
    kept = json.loads(Path("kept.json").read_text())
    assert list(kept) == ["test_benchmarks.trivial"]
    entry = kept["test_benchmarks.trivial"]
    assert {"date", "commit", "machine", "versions", "cpu_seconds"} < set(entry)
    assert "numpy" in entry["versions"]
    assert [row["size"] for row in entry["rows"]] == [10, 1000]
    assert [len(row["ns"]) for row in entry["rows"]] == [4, 4]
    page = Path("kept.md").read_text()
    assert page.startswith("### Sums\n\nCPU time of a sum.\n\n|")
    assert "1,000 |" in page
    assert page.strip("\n") in told.output


def test_a_run_is_compared_with_the_last_one(run: CliRunner) -> None:
    arguments = ["--quick", "--only", "test_benchmarks", "--results", "kept.json"]
    first = run.invoke(command.main, arguments, catch_exceptions=False)
    assert "test_benchmarks.trivial: there is no last run" in first.output
    kept = json.loads(Path("kept.json").read_text())
    kept["test_benchmarks.trivial"]["rows"][1]["seconds"] = 1.0
    kept["test_benchmarks.trivial"]["machine"] = "an abacus"
    Path("kept.json").write_text(json.dumps(kept))
    second = run.invoke(command.main, arguments, catch_exceptions=False)
    assert "4 costs" in second.output
    assert "on another machine (an abacus)" in second.output
    assert "slower: 1,000: seconds 1 -> 2.5, ratio 2.50" in second.output
    assert "10: seconds" not in second.output


def test_a_benchmark_can_be_chosen(run: CliRunner) -> None:
    told = run.invoke(command.main, ["--list", "--only", "test_benchmarks.trivial"])
    assert told.output.split() == ["test_benchmarks.trivial", "Sums"]
    refused = run.invoke(command.main, ["--only", "trivia"])
    assert refused.exit_code == 1
    assert "no such benchmark; there are test_benchmarks.elsewhere" in refused.output


@pytest.mark.parametrize(
    ("before", "now", "verdict"),
    [
        ([1.0, 1.01, 1.02, 1.05, 9.0], [1.3, 1.31, 1.32, 1.35, 1.4], "slower"),
        ([1.3, 1.31, 1.32, 1.35, 1.4], [1.0, 1.01, 1.02, 1.05, 9.0], "faster"),
        ([1.0, 1.02, 1.05, 1.1], [1.08, 1.1, 1.12, 1.15], ""),  # within the noise between runs
        ([1.0, 1.2, 1.5, 2.0], [1.3, 1.6, 1.8, 2.1], ""),  # within the spread of a run
        (1.0, 1.25, "slower"),
        (1.0, 1.15, ""),
    ],
)
def test_what_got_slower_by_more_than_the_noise(
    before: float | list[float], now: float | list[float], verdict: str
) -> None:
    (change,) = comparison(trivial, [{"size": 1, "ns": now}], [{"size": 1, "ns": before}])
    assert change.verdict == verdict


def test_only_the_same_rows_are_compared() -> None:
    new: list[Row] = [{"size": 1, "ns": 1.0}, {"size": 2, "seconds": 1.0}]
    old: list[Row] = [{"size": 3, "ns": 1.0}, {"size": 2, "ns": 1.0, "seconds": None}]
    assert list(comparison(trivial, new, old)) == []


def test_every_benchmark_says_what_it_counts() -> None:
    everything = command.found()
    assert {name.partition(".")[0] for name in everything} >= {"kernel", "jobs", "peers"}
    for one in everything.values():
        assert isinstance(one, Benchmark)
        assert one.title and one.counted and one.key
