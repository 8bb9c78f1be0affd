"""Capacity planning against closed forms and brute force."""

import doctest
import math
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner

import manyserver as ms
from manyserver.__main__ import main

RANDOM, TWO = ms.policy("random"), ms.policy("sq", d=2)
EQUAL = [ms.Pool(1, 1)]


@pytest.mark.parametrize("at_most", [1.25, 2.0, 10.0])
def test_the_highest_load_of_independent_queues_is_that_of_mm1(at_most: float) -> None:
    for n_servers in (None, 3):
        found = ms.highest_load(EQUAL, RANDOM, ms.Target("sojourn_mean", at_most), n_servers)
        # Four half-widths are eight standard errors.
        assert abs(found.value - (1 - 1 / at_most)) <= max(4 * found.half_width, 1e-6)
        assert found.half_width < 0.02


def test_the_highest_load_is_where_the_fixed_point_reaches_the_target() -> None:
    pools = [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")]
    scheme = ms.policy("scheme1", d=(2, 2))
    load = ms.highest_load(pools, scheme, ms.Target("sojourn_mean", 1.5)).value
    below, above = (
        ms.fixed_point(ms.System(load * part, pools), scheme).sojourn_mean.item()
        for part in (1 - 1e-4, 1 + 1e-4)
    )
    assert below < 1.5 < above


def test_few_servers_bear_less_than_many() -> None:
    target = ms.Target("sojourn_mean", 1.5)
    loads = [ms.highest_load(EQUAL, TWO, target, n).value for n in (4, 20, None)]
    assert loads[0] < loads[1] < loads[2]
    exact = ms.exact(ms.System(loads[0], EQUAL, 4), TWO, tolerance=1e-4)
    # The half-width of what was simulated is 0.2 %, the search ends within 0.1 % of the load.
    assert exact.sojourn_mean.item() == pytest.approx(1.5, rel=0.01)


def test_no_load_meets_a_target_below_the_service_time() -> None:
    assert math.isnan(ms.highest_load(EQUAL, TWO, ms.Target("sojourn_mean", 0.9)).value)
    answer = ms.fewest_servers(EQUAL, TWO, ms.Target("sojourn_mean", 0.9), 3.0)
    assert math.isnan(answer.value)


@pytest.mark.parametrize("at_most", [1.3, 2.5])
def test_the_fewest_servers_are_those_of_brute_force(at_most: float) -> None:
    found = ms.fewest_servers(EQUAL, RANDOM, ms.Target("sojourn_mean", at_most), 7.3)
    # n M/M/1 queues of rate 7.3 / n each.
    fewest = next(n for n in range(8, 100) if 1 / (1 - 7.3 / n) <= at_most)
    assert abs(found.value - fewest) <= max(1, found.half_width)
    pools = [ms.Pool("1/3", 1), ms.Pool("2/3", "1/2")]
    assert ms.fewest_servers(pools, TWO, ms.Target("waiting_probability", 0.5), 5.0).value % 3 == 0


def test_the_cheapest_mix_leaves_out_what_is_dear() -> None:
    target = ms.Target("sojourn_mean", 1.2)

    def jsq(pools: int) -> ms.Policy:
        return ms.policy("jsq", ties="fastest")

    mix = ms.cheapest_mix([1, 2], [1.0, 1.5], jsq, target, 10.0)
    assert mix is not None
    assert mix.fractions == (Fraction(0), Fraction(1))
    assert mix.cost == pytest.approx(1.5 * mix.n_servers)
    dear = ms.cheapest_mix([1, 2], [1.0, 3.0], jsq, target, 10.0)
    assert dear is not None
    assert dear.fractions == (Fraction(1), Fraction(0))
    assert ms.cheapest_mix(["1/2"], [1.0], jsq, target, 10.0) is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ms.Target("sojourn", 1), "quantity = 'sojourn': must be one of sojourn_mean"),
        (lambda: ms.Target("sojourn_mean", -1), "at_most = -1: must be"),
        (
            lambda: ms.fewest_servers(EQUAL, TWO, ms.Target("sojourn_mean", 2), 1e9),
            "arrival_rate = 1000000000.0: needs more than 10000000 servers",
        ),
        (
            lambda: ms.cheapest_mix([1], [], lambda n: TWO, ms.Target("sojourn_mean", 2), 1),
            r"costs = \[\]: must be as many as speeds",
        ),
    ],
)
def test_what_is_out_of_range_is_refused(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]


def run(*given: str) -> str:
    said = CliRunner().invoke(main, ["plan", *given])
    assert said.exit_code in (0, 1), said.output
    return said.output


def test_the_command() -> None:
    assert run("--policy", "random", "--at-most", "2").startswith("highest load: 0.5 (")
    two = ("--policy", "sq", "--set", "d=2")
    assert run(*two, "--at-most", "1.5", "--jobs", "40").startswith("fewest servers: 62")
    mix = run(
        "--policy", "jsq", "--at-most", "1.2", "--jobs", "10", "--type", "1,1", "--type", "2,3"
    )
    assert mix.startswith("cheapest mix: ")
    assert "of speed 1, cost" in mix
    assert "no load meets this target" in run(*two, "--at-most", "0.5")
    assert "type: needs --jobs" in run(*two, "--at-most", "2", "--type", "1,1")
    assert "type = 'x': must be SPEED,COST" in run(
        *two, "--at-most", "2", "--jobs", "1", "--type", "x"
    )


def test_the_examples_of_the_page_are_true() -> None:
    page = Path(__file__).parents[1] / "docs" / "planning.md"
    assert doctest.testfile(str(page), module_relative=False).failed == 0
