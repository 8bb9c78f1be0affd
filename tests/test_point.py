"""One point at the command line."""

import json
import re

import pytest
from click.testing import CliRunner

import manyserver as ms
from manyserver.__main__ import main
from manyserver.commands.one_point import point

TWO_POOLS = ["--pool", "1/2,2/3", "--pool", "1/2,4/3"]
SQ2 = ["--policy", "sq", "--set", "d=2"]


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(main, ["point", *arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_the_limit_is_that_of_the_function() -> None:
    said = run(*TWO_POOLS, "--load", "0.9", "--policy", "scheme1", "--set", "d=[2,2]")
    system = ms.System(0.9, [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")])
    mean = float(ms.fixed_point(system, ms.policy("scheme1", d=[2, 2])).sojourn_mean)
    row = re.search(r"^sojourn_mean +(\S+) +time +mean sojourn time", said, re.MULTILINE)
    assert row is not None
    assert float(row[1]) == pytest.approx(mean, rel=1e-5)


def test_json_holds_all_of_a_simulation() -> None:
    asked = ["--servers", "10", "--load", "0.5", *SQ2, "--option", "precision=0.01", "--json"]
    found = json.loads(run(*asked, "--seed", "3"))
    system = ms.System(0.5, [ms.Pool(1, 1)], n_servers=10)
    result = ms.simulate(system, ms.policy("sq", d=2), precision=0.01, seed=3, threads=1)
    assert set(found) == {"attributes", *map(str, result.variables)}
    assert found["sojourn_mean"] == float(result.sojourn_mean)
    assert found["autocorrelation_time"] is None
    assert "+-" in run(*asked[:-1])


def test_jobs_are_followed_if_sizes_are_named() -> None:
    sizes = ["--sizes", "erlang", "--size", "shape=2", "--discipline", "fcfs"]
    said = run("--servers", "4", "--load", "0.5", *SQ2, *sizes, "--option", "precision=0.1")
    assert re.search(r"^waiting_mean +\S+ \+- \S+ +time", said, re.MULTILINE)


def test_the_example_of_the_help_works() -> None:
    text = " ".join((point.help or "").split())
    _, example = text.split("For example: manyserver point ")
    assert "sojourn_mean" in run(*example.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*SQ2], "load, arrival-rate: give one of them"),
        ([*SQ2, "--load", "1.9"], "arrival_rate = 1.9: load is 1.9; must be below the capacity"),
        (["--policy", "sq", "--set", "dd=2", "--load", "0.9"], "dd = 2: unknown parameter"),
        (["--policy", "sq", "--set", "d", "--load", "0.9"], "set = 'd': must be NAME=VALUE"),
        ([*SQ2, "--load", "0.9", "--pool", "1"], "pool = '1': must be FRACTION,SPEED"),
        ([*SQ2, "--load", "0.9", "--method", "exact"], "'exact': does not apply to the limit"),
        ([*SQ2, "--load", "0.9", "--method", "exakt"], "unknown method"),
        ([*SQ2, "--load", "0.9", "--method", "chain"], "for studies of the model halfin_whitt"),
        ([*SQ2, "--load", "0.9", "--size", "shape=2"], "size: needs --sizes"),
        ([*SQ2, "--load", "0.9", "--discipline", "lifo"], "discipline = 'lifo'"),
        ([*SQ2, "--load", "0.9", "--servers", "4", "--option", "precisoin=1"], "precisoin"),
        (
            [*SQ2, "--load", "0.9", "--servers", "4", "--method", "exact", "--discipline", "ps"],
            "knows exponential job sizes only",
        ),
    ],
)
def test_bad_input_is_told_in_one_line(arguments: list[str], message: str) -> None:
    assert message in run(*arguments, code=1)
