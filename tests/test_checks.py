"""What users hand in by mistake gets one clear error, wherever it is handed in."""

import inspect
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import manyserver as ms
from manyserver.checks import checked_count, checked_flag, checked_number

SYSTEM = ms.System(0.5, [ms.Pool(1, 1)], n_servers=4)
POLICY = ms.policy("sq", d=2)
OF_A_SYSTEM = [
    "exact",
    "fixed_point",
    "mean_field",
    "pull_asymptotics",
    "pull_fixed_point",
    "refine",
    "relaxation_time",
    "simulate",
    "sojourn_law",
    "transient",
]


@pytest.mark.parametrize("number", [2, 2.0, np.int32(2), np.float32(2), np.array(2), Fraction(2)])
def test_numbers(number: object) -> None:
    assert checked_number("x", number) == 2
    assert ms.Pool(1, number).speed == 2  # type: ignore[arg-type]
    assert ms.System(number, [ms.Pool(1, 4)]).arrival_rate == 2  # type: ignore[arg-type]
    assert ms.size_law("weibull", shape=number).parameters["shape"] == 2


@pytest.mark.parametrize("number", [2, np.int64(2), np.array(2)])
def test_integers(number: object) -> None:
    assert checked_count("n", number) == 2
    assert ms.Pool(1, 1, number).buffer == 2  # type: ignore[arg-type]
    assert ms.System(0.5, [ms.Pool(1, 1)], number).n_servers == 2  # type: ignore[arg-type]
    assert ms.policy("sq", d=number).parameters["d"] == 2
    assert ms.size_law("erlang", shape=number).parameters["shape"] == 2


@pytest.mark.parametrize(
    "value", [True, np.True_, "2", None, [2], np.array([2]), 2j, float("nan"), Decimal(2)]
)
def test_what_is_no_number(value: object) -> None:
    with pytest.raises(ValueError, match=r"^x = .*: must be a finite number greater than 0"):
        checked_number("x", value)
    with pytest.raises(ValueError, match=r"^n = .*: must be an integer >= 1, or None"):
        checked_count("n", value, otherwise="None")


def test_more_than_floating_point_holds() -> None:
    with pytest.raises(ValueError, match="must be a finite number"):
        checked_number("x", 10**400)


def test_truth_values() -> None:
    assert checked_flag("x", np.True_) is True
    with pytest.raises(ValueError, match="x = 1: must be true or false"):
        checked_flag("x", 1)


def test_long_values_are_cut() -> None:
    with pytest.raises(ValueError) as error:
        checked_number("x", list(range(10**5)))
    assert len(str(error.value)) < 300


@pytest.mark.parametrize("name", OF_A_SYSTEM)
def test_swapped_and_wrong_arguments(name: str) -> None:
    times = [[0.0, 1.0]] if name in ("mean_field", "transient") else []
    of: Callable[..., object] = getattr(ms, name)
    with pytest.raises(ValueError, match=r"system = SQ\(.*: must be a System"):
        of(POLICY, SYSTEM, *times)
    with pytest.raises(ValueError, match="policy = 'sq': must be a policy"):
        of(SYSTEM, "sq", *times)
    with pytest.raises(ValueError, match="system = None: must be a System"):
        of(None, POLICY, *times)


def test_every_function_of_a_system_is_tried() -> None:
    functions = [name for name in ms.__all__ if inspect.isfunction(getattr(ms, name))]
    taking = [
        name for name in functions if "system" in inspect.signature(getattr(ms, name)).parameters
    ]
    assert set(taking) == set(OF_A_SYSTEM)
    with pytest.raises(ValueError, match="system = 'x': must be a System"):
        ms.compare("x", [POLICY, POLICY])  # type: ignore[arg-type]


@pytest.mark.parametrize("pools", ["x", None, SYSTEM, []])
def test_what_is_no_list_of_pools(pools: object) -> None:
    target = ms.Target("sojourn_mean", 2)
    for call in (
        lambda: ms.stability_limit(pools, POLICY),  # type: ignore[arg-type]
        lambda: ms.highest_load(pools, POLICY, target),  # type: ignore[arg-type]
        lambda: ms.fewest_servers(pools, POLICY, target, 1.0),  # type: ignore[arg-type]
    ):
        with pytest.raises(ValueError, match=r"^pools.*must be a"):
            call()
    one = [ms.Pool(1, 1)]
    with pytest.raises(ValueError, match="policy = 'sq': must be a policy"):
        ms.stability_limit(one, "sq")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="policy = 'sq': must be a policy"):
        ms.highest_load(one, "sq", target)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="target = 2: must be a Target"):
        ms.highest_load(one, POLICY, 2)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong", ["x", object(), SYSTEM, float("nan")], ids=["text", "object", "system", "nan"]
)
@pytest.mark.parametrize(
    "name", [name for name in dir(ms.halfin_whitt) if not name.startswith("_")]
)
def test_diffusion(name: str, wrong: object) -> None:
    """Every parameter, one at a time, of every function."""
    of = getattr(ms.halfin_whitt, name)
    if not inspect.isfunction(of):
        return
    good = {"n": 100, "kappa": 2.0, "i": 3}
    parameters = inspect.signature(of).parameters
    needed = [key for key, own in parameters.items() if own.default is own.empty]
    for parameter in parameters:
        given = {key: good.get(key, 1.0) for key in needed} | {parameter: wrong}
        with pytest.raises(ValueError, match=r"must|has shape"):
            of(**given)


@pytest.mark.parametrize("size", [2**15, 2**62, 2**63, 10**30])
def test_sizes_beyond_any_memory(size: int) -> None:
    with pytest.raises(ValueError, match=f"buffer = {size}: must be an integer >= 1 and <= 32767"):
        ms.Pool(1, 1, size)
    with pytest.raises(ValueError, match="must"):
        ms.simulate(ms.System(0.5, [ms.Pool(1, 1)], 2**40 * size), POLICY)
    with pytest.raises(ValueError, match=r"d = .*: must be an integer >= 1 and <= 100000"):
        ms.policy("sq", d=10**6 * size)


def test_memory_is_known_before() -> None:
    huge = ms.System(0.5, [ms.Pool(1, 1)], n_servers=10**12)
    assert float(ms.fixed_point(huge, POLICY).sojourn_mean) == pytest.approx(1.2657, abs=1e-3)
    with pytest.raises(ValueError, match=r"n_servers = 1000000000000: .* needs at least .* GiB"):
        ms.simulate(huge, POLICY)
    with pytest.raises(ValueError, match="the exact chain needs more than 1e\\+12 states"):
        ms.exact(huge, POLICY)
