"""Capacity planning: the highest load, the fewest servers and the cheapest mix for a target."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import get_args

from manyserver.checks import checked_count, checked_kind, checked_number
from manyserver.model import Pool, System, UnstableSystem, exact_capacity
from manyserver.policies import Policy, check_fit
from manyserver.variables import MeanName

__all__ = [
    "Answer",
    "Mix",
    "Target",
    "cheapest_mix",
    "fewest_servers",
    "highest_load",
]

LOAD_ERROR = 1e-7
"""Of the highest load in the limit."""
NEXT_TO_ONE = 1 - 1e-6
SEARCHED = 1e-3
"""Of the highest load of finitely many servers: where root-finding ends."""
MOST_SERVERS = 10**7
PARTS = 10
"""Parts into which the servers are divided in the search for a mix."""
PRECISION = 0.002


@dataclass(frozen=True)
class Target:
    """A variable, and its largest value that is accepted.

    Parameters
    ----------
    quantity : {"sojourn_mean", "jobs_per_server", "waiting_probability"}
    at_most : float
        Greater than zero, in the unit of the variable.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    """

    quantity: str
    at_most: float

    def __post_init__(self) -> None:
        if self.quantity not in get_args(MeanName):
            allowed = ", ".join(get_args(MeanName))
            raise ValueError(f"quantity = {self.quantity!r}: must be one of {allowed}")
        checked_number("at_most", self.at_most)


@dataclass(frozen=True)
class Answer:
    """What meets a target.

    Attributes
    ----------
    value : float
        The highest load, or the fewest servers; NaN if nothing meets the target.
    half_width : float
        Of a 95 % interval of a load; 0 in the limit. Of a number of servers, how many more there
        must be to be certain.
    reached : float
        The variable of the target there.
    reached_half_width : float
        Of its 95 % interval; 0 in the limit.
    """

    value: float
    half_width: float
    reached: float
    reached_half_width: float


@dataclass(frozen=True)
class Mix:
    """Servers of several types that meet a target together.

    Attributes
    ----------
    fractions : tuple of Fraction
        Of each type.
    n_servers : int
        All of them.
    cost : float
        Of all of them, per unit of time.
    reached, reached_half_width : float
        The variable of the target, simulated, and its 95 % half-width.
    """

    fractions: tuple[Fraction, ...]
    n_servers: int
    cost: float
    reached: float
    reached_half_width: float


def highest_load(
    pools: Sequence[Pool],
    policy: Policy,
    target: Target,
    n_servers: int | None = None,
    *,
    precision: float = PRECISION,
    seed: int = 1,
) -> Answer:
    """Find the highest load at which a target is met.

    Parameters
    ----------
    pools : sequence of Pool
    policy : Policy
    target : Target
        Its variable must increase with the load, as all of them do.
    n_servers : int, optional
        Number of servers, which are simulated; None is the limit of many.
    precision : float, optional
        Relative half-width of the simulated variable.
    seed : int, optional

    Returns
    -------
    Answer
        The load, from 0 to 1; NaN if no load meets the target.

    Raises
    ------
    ValueError
        If the policy does not fit the pools, or the number of servers does not.

    Examples
    --------
    Servers that know nothing of each other are M/M/1 queues, with mean sojourn time 1 / (1 - load):

    >>> from manyserver import Pool, policy
    >>> found = highest_load([Pool(1, 1)], policy("random"), Target("sojourn_mean", 2))
    >>> round(found.value, 6), round(found.reached, 5)
    (0.5, 2.0)
    """
    from scipy.optimize import brentq

    value = _measure(pools, policy, target, n_servers, precision, seed)

    def excess(load: float) -> float:
        found, _ = value(load)
        return min(found, 1e6 * target.at_most) / target.at_most - 1

    low, high = 1e-4, NEXT_TO_ONE
    if excess(low) > 0:
        return Answer(math.nan, math.nan, *value(low))
    if n_servers is not None:
        # With fewer servers queues are longer, and the limit is not far above what is looked for.
        high = highest_load(pools, policy, target).value
        if math.isnan(high):
            return Answer(math.nan, math.nan, math.nan, math.nan)
        high = min(NEXT_TO_ONE, high + 0.02)
        low = _below(excess, high)
    if excess(high) <= 0:
        return Answer(high, 0.0, *value(high))
    error = LOAD_ERROR if n_servers is None else SEARCHED * (1 - low)
    load = float(brentq(excess, low, high, xtol=error))
    reached, half_width = value(load)
    step = min(0.01, (1 - load) / 4, load / 4)
    slope = (value(load + step)[0] - value(load - step)[0]) / (2 * step)
    return Answer(load, half_width / slope + (error if n_servers else 0.0), reached, half_width)


def _below(excess: Callable[[float], float], high: float) -> float:
    """Return a load below a given one at which a target is met."""
    step = 0.05
    while excess(max(1e-4, high - step)) > 0:
        step *= 2
    return max(1e-4, high - step)


def _measure(
    pools: Sequence[Pool],
    policy: Policy,
    target: Target,
    n_servers: int | None,
    precision: float,
    seed: int,
) -> Callable[[float], tuple[float, float]]:
    """Return the function that computes the variable of a target, with its half-width."""
    from manyserver.mean_field import fixed_point
    from manyserver.simulate import simulate

    check_fit(System(1e-9, pools, n_servers), policy)
    checked_kind("target", target, Target, "a Target")
    capacity = float(exact_capacity(pools))
    found: dict[float, tuple[float, float]] = {}

    def value(load: float) -> tuple[float, float]:
        if load in found:
            return found[load]
        try:
            system = System(load * capacity, pools, n_servers)
            if n_servers is None:
                result = fixed_point(system, policy)
                width = 0.0
            else:
                result = simulate(system, policy, seed=seed, precision=precision)
                width = float(result[f"{target.quantity}_half_width"])
        except UnstableSystem:
            return found.setdefault(load, (math.inf, 0.0))
        return found.setdefault(load, (float(result[target.quantity]), width))

    return value


def fewest_servers(
    pools: Sequence[Pool],
    policy: Policy,
    target: Target,
    arrival_rate: float,
    *,
    precision: float = PRECISION,
    seed: int = 1,
) -> Answer:
    """Find the fewest servers that meet a target for given arrivals.

    Parameters
    ----------
    pools : sequence of Pool
        Their fractions stay as they are, so that the number is a multiple of their denominators.
    policy : Policy
    target : Target
    arrival_rate : float
        Jobs per unit of time, of the whole system.
    precision, seed
        As for :func:`highest_load`.

    Returns
    -------
    Answer
        The number of servers, and what they reach, simulated. Its half-width is how many more must
        be there so that the upper end of the interval meets the target, too.

    Raises
    ------
    ValueError
        As for :func:`highest_load`, or if there would be more than ten million servers.

    Examples
    --------
    >>> from manyserver import Pool, policy
    >>> target = Target("sojourn_mean", 1.5)
    >>> found = fewest_servers([Pool(1, 1)], policy("sq", d=2), target, arrival_rate=40)
    >>> int(found.value), found.reached < 1.5
    (62, True)
    """
    rate = checked_number("arrival_rate", arrival_rate)
    pools = System(1e-9, pools).pools
    unit = math.lcm(*(pool.fraction.denominator for pool in pools))
    capacity = float(exact_capacity(pools))
    limit = highest_load(pools, policy, target).value
    if math.isnan(limit):
        return Answer(math.nan, math.nan, math.nan, math.nan)
    value: dict[int, tuple[float, float]] = {}

    def reached(count: int) -> tuple[float, float]:
        if count not in value:
            n = count * unit
            load = rate / (n * capacity)
            value[count] = (
                (math.inf, 0.0)
                if load >= 1
                else _measure(pools, policy, target, n, precision, seed)(load)
            )
        return value[count]

    fewest = math.ceil(rate / (limit * capacity * unit))
    if fewest * unit > MOST_SERVERS:
        raise ValueError(f"arrival_rate = {arrival_rate!r}: needs more than {MOST_SERVERS} servers")
    count = _first(lambda count: reached(count)[0] <= target.at_most, max(1, fewest))
    sure = _first(lambda count: sum(reached(count)) <= target.at_most, count)
    return Answer(count * unit, float((sure - count) * unit), *reached(count))


def _first(holds: Callable[[int], bool], guess: int) -> int:
    """Return the first number for which something holds that holds from some number on."""
    low, high, step = 0, guess, 1
    while not holds(high):
        low, high, step = high, high + step, 2 * step
    step = 1
    while high - step > low and holds(high - step):
        high, step = high - step, 2 * step
    low = max(low, high - step)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if middle and holds(middle) else (middle, high)
    return high


def cheapest_mix(
    speeds: Sequence[float | str | Fraction],
    costs: Sequence[float],
    policy: Callable[[int], Policy],
    target: Target,
    arrival_rate: float,
    *,
    precision: float = PRECISION,
    seed: int = 1,
) -> Mix | None:
    """Find the cheapest mix of some types of servers that meets a target.

    Parameters
    ----------
    speeds : sequence, shape (type,)
    costs : sequence of float, shape (type,)
        Of a server of each type, per unit of time.
    policy : callable
        Makes the policy for a number of pools.
    target, arrival_rate, precision, seed
        As for :func:`fewest_servers`.

    Returns
    -------
    Mix or None
        None if no mix meets the target. All mixes of tenths are compared in the limit, and then the
        number of servers of the cheapest one is found by simulation.

    Raises
    ------
    ValueError
        As for :func:`fewest_servers`, or if there are not as many costs as speeds.

    Examples
    --------
    >>> from manyserver import policies
    >>> mix = cheapest_mix(
    ...     [1, 2], [1.0, 1.5], lambda pools: policies.JSQ(), Target("sojourn_mean", 1.2), 30.0
    ... )
    >>> [str(fraction) for fraction in mix.fractions]
    ['0', '1']
    """
    if len(speeds) != len(costs) or not speeds:
        raise ValueError(f"costs = {list(costs)}: must be as many as speeds, at least one")
    for cost in costs:
        checked_number("costs", cost)
    priced = []
    for shares in _shares(len(speeds)):
        pools = _pools(shares, speeds)
        limit = highest_load(pools, policy(len(pools)), target).value
        if not math.isnan(limit):
            servers = arrival_rate / (limit * float(exact_capacity(pools)))
            each = sum(float(share) * cost for share, cost in zip(shares, costs, strict=True))
            priced.append((servers * each, each, shares, pools))
    if not priced:
        return None
    _, each, shares, pools = min(priced, key=lambda one: one[0])
    found = fewest_servers(
        pools, policy(len(pools)), target, arrival_rate, precision=precision, seed=seed
    )
    count = checked_count("n_servers", int(found.value))
    return Mix(shares, count, count * each, found.reached, found.reached_half_width)


def _shares(types: int) -> Iterator[tuple[Fraction, ...]]:
    """Yield all divisions of the servers into tenths."""
    for parts in product(range(PARTS + 1), repeat=types - 1):
        if sum(parts) <= PARTS:
            yield tuple(Fraction(part, PARTS) for part in (*parts, PARTS - sum(parts)))


def _pools(shares: Sequence[Fraction], speeds: Sequence[float | str | Fraction]) -> list[Pool]:
    pairs = zip(shares, speeds, strict=True)
    return [Pool(share, speed) for share, speed in pairs if share]
