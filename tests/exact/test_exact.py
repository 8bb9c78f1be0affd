"""The exact chain against closed forms, symmetries, identities and a chain of single servers."""

import math

import numpy as np
import pytest
from tests import registry
from tests.exact.single_servers import single_servers

import manyserver as ms
from manyserver.exact import exact, stationary, stationary_law
from manyserver.exact.chain import Chain, build_chain
from manyserver.exact.choice import Choice
from manyserver.exact.states import count_states, enumerate_states
from manyserver.joining import JoiningLaw
from manyserver.policies import Policy

EXAMPLES: dict[str, list[dict[str, object]]] = {
    "random": [{"probabilities": [0.25, 0.75]}],
    "naive_split": [{}],
    "optimal_split": [{}],
    "sq": [{"d": 1}, {"d": 2}, {"d": 3, "ties": "fastest"}, {"d": 2, "replacement": True}],
    "hybrid_sq": [{"d": [1, 2]}, {"d": 2, "split": "naive", "replacement": True}],
    "scheme1": [{"d": [1, 2]}, {"d": [0, 2]}, {"d": [2, 2], "replacement": True}],
    "scheme2": [{"d": [1, 2]}, {"d": [1, 1]}],
    "sed": [{"d": 2}, {"d": [1, 2]}, {"d": 3, "replacement": True}, {}],
    "jsq": [{}, {"ties": "fastest"}],
    "jiq": [{}, {"d": 2}, {"d": 2, "ties": "fastest", "replacement": True}],
    "threshold": [{"threshold": 2}, {"threshold": 3, "ties": "fastest"}],
}
POLICIES = [
    pytest.param(ms.policy(name, **parameters), id=f"{name} {parameters}")
    for name, several in EXAMPLES.items()
    for parameters in several
]
UNEQUAL = [ms.Pool("1/3", "1/2"), ms.Pool("2/3", "5/4")]
EQUAL = [ms.Pool("1/3", 1), ms.Pool("2/3", 1)]


def bounded(pools: list[ms.Pool], buffers: list[int]) -> list[ms.Pool]:
    return [
        ms.Pool(pool.fraction, pool.speed, buffer)
        for pool, buffer in zip(pools, buffers, strict=True)
    ]


@pytest.mark.parametrize("policy", [*registry.policies(), *registry.announced_policies()], ids=str)
@pytest.mark.parametrize(
    "pools",
    [registry.POOLS, registry.EQUAL, registry.BOUNDED],
    ids=["unequal", "equal", "bounded"],
)
def test_choice_is_the_joining_law(policy: Policy, pools: list[ms.Pool]) -> None:
    system = ms.System(0.5, pools, n_servers=8)
    caps = ((2, 1), (3, 0), (1, 1, 1, 1) if pools is registry.BOUNDED else (3, 3, 1, 1))
    jobs = enumerate_states(caps).jobs
    jobs = jobs[:: max(1, len(jobs) // 100)]
    choice = Choice(system, policy, jobs)
    law = JoiningLaw(system, policy, 4, finite=True)
    states = np.arange(len(jobs))
    joins = np.zeros((len(jobs), 3, 4))
    for server, pool in enumerate(choice.pool_of):
        joins[states, pool, jobs[:, server]] += choice.probabilities(server, states)
    counts = np.zeros(joins.shape)
    for server, pool in enumerate(choice.pool_of):
        for level in range(4):
            counts[:, pool, level] += jobs[:, server] >= level
    tails = counts / np.array([[2], [2], [4]])
    full = law.full
    expected = np.array([law.probabilities(own) for own in tails])
    blocked = np.array([law.blocking(own) for own in tails])
    assert np.where(full, 0, joins) == pytest.approx(expected, abs=1e-14)
    assert np.where(full, joins, 0).sum(axis=2) == pytest.approx(blocked, abs=1e-14)


@pytest.mark.parametrize("rate", [0.3, 0.9])
def test_one_server(rate: float) -> None:
    result = exact(ms.System(rate, [ms.Pool(1, 1)], n_servers=1), ms.policy("sq", d=1))
    tails = rate ** np.arange(result.sizes["level"])
    assert result.queue_tail.values[0] == pytest.approx(tails, rel=1e-9, abs=1e-13)
    assert float(result.sojourn_mean) == pytest.approx(1 / (1 - rate), rel=1e-12)
    assert float(result.waiting_probability) == pytest.approx(rate, rel=1e-12)
    assert result.joining_rate.values == pytest.approx(rate)
    assert float(result.blocking_probability) == 0
    assert float(result.residual) < 1e-12
    assert float(result.truncation_error) < 1e-12


def test_truncation_error_is_that_of_the_mean() -> None:
    system = ms.System(0.9, [ms.Pool(1, 1)], n_servers=1)
    result = exact(system, ms.policy("sq", d=1), tolerance=1e-4)
    error = 1 - float(result.jobs_per_server) / 9
    assert float(result.truncation_error) == pytest.approx(error, rel=1e-3)
    assert 1e-6 < error < 1e-4


@pytest.mark.parametrize(
    ("pools", "policy", "n"),
    [
        ([ms.Pool(1, 1)], ms.policy("sq", d=3), 3),
        ([ms.Pool(1, 1)], ms.policy("sq", d=2, replacement=True), 5),
        ([ms.Pool("1/2", "1/5"), ms.Pool("1/2", "9/5")], ms.policy("scheme2", d=[2, 1]), 4),
    ],
    ids=["jsq", "sq with replacement", "scheme2"],
)
def test_truncation_error_bounds_the_error(pools: list[ms.Pool], policy: Policy, n: int) -> None:
    system = ms.System(0.5, pools, n_servers=n)
    rough = exact(system, policy, tolerance=1e-4)
    fine = exact(system, policy)
    error = abs(float(rough.jobs_per_server) / float(fine.jobs_per_server) - 1)
    assert error < 2 * float(rough.truncation_error) < 2e-4


def test_random_split_has_a_product_form() -> None:
    system = ms.System(0.5, UNEQUAL, n_servers=3)
    law = stationary_law(system, ms.policy("random", probabilities=[0.2, 0.8]))
    loads = np.array([0.5 * 0.2 * 3 / 0.5, 0.5 * 0.4 * 3 / 1.25, 0.5 * 0.4 * 3 / 1.25])
    orders = np.where(law.jobs[:, 1] == law.jobs[:, 2], 1, 2)
    expected = orders * np.prod((1 - loads) * loads**law.jobs, axis=1)
    assert law.probabilities == pytest.approx(expected, rel=1e-6, abs=1e-13)


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("ties", ["uniform", "fastest"])
def test_order_of_pools_makes_no_difference(replacement: bool, ties: str) -> None:
    policy = ms.policy("sq", d=2, ties=ties, replacement=replacement)
    one = exact(ms.System(0.5, UNEQUAL, n_servers=3), policy)
    other = exact(ms.System(0.5, UNEQUAL[::-1], n_servers=3), policy)
    assert one.queue_mean.values == pytest.approx(other.queue_mean.values[::-1], rel=1e-11)
    assert float(one.sojourn_mean) == pytest.approx(float(other.sojourn_mean), rel=1e-11)


@pytest.mark.parametrize("replacement", [False, True])
def test_equal_pools_are_one_pool(replacement: bool) -> None:
    policy = ms.policy("sq", d=2, replacement=replacement)
    two = exact(ms.System(0.7, EQUAL, n_servers=3), policy)
    one = exact(ms.System(0.7, [ms.Pool(1, 1)], n_servers=3), policy)
    levels = min(two.sizes["level"], one.sizes["level"])
    for pool in (0, 1):
        expected = one.queue_tail.values[0, :levels]
        assert two.queue_tail.values[pool, :levels] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("pools", [UNEQUAL, EQUAL], ids=["unequal", "equal"])
def test_chain_of_single_servers(policy: Policy, pools: list[ms.Pool]) -> None:
    """Full servers rank last: also what the policies do where buffers are finite."""
    system = ms.System(0.9, bounded(pools, [2, 3]), n_servers=3)
    brute, blocked = single_servers(system, policy)
    law = stationary_law(system, policy)
    states = np.array(list(brute))
    states[:, 1:] = -np.sort(-states[:, 1:], axis=1)
    expected = np.zeros(len(law.jobs))
    position = {tuple(jobs): i for i, jobs in enumerate(law.jobs.tolist())}
    for state, probability in zip(states.tolist(), brute.values(), strict=True):
        # States in which a pool that is never looked at has jobs are left out.
        if tuple(state) in position:
            expected[position[tuple(state)]] += probability
        else:
            assert probability == pytest.approx(0, abs=1e-13)
    result = exact(system, policy)
    assert law.probabilities == pytest.approx(expected, abs=1e-13)
    assert float(result.blocking_probability) == pytest.approx(blocked, abs=1e-13)
    assert float(result.truncation_error) == 0


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("pools", [UNEQUAL, EQUAL], ids=["unequal", "equal"])
def test_flows_balance_in_the_mean(policy: Policy, pools: list[ms.Pool]) -> None:
    """E[G f] = 0 for f the servers with k jobs or more, and for the square of all jobs.

    The flows are those of the joining law, state by state.
    """
    system = ms.System(0.3, pools, n_servers=3)
    law = stationary_law(system, policy, tolerance=1e-7)
    joining = JoiningLaw(system, policy, law.levels, finite=True)
    tails = law.tails()
    joins = np.array([joining.probabilities(own) for own in tails])
    above = np.cumsum(joins[:, :, ::-1], axis=2)[:, :, ::-1]
    served = (system.fractions * system.speeds)[:, None] * tails[:, :, 1:]
    balance = served - system.arrival_rate * above[:, :, :-1]
    assert law.probabilities @ balance.reshape(len(tails), -1) == pytest.approx(0, abs=1e-7)
    output = served[:, :, 0].sum(axis=1)
    jobs = law.jobs.mean(axis=1)
    square = 2 * jobs * (output - system.arrival_rate) - (output + system.arrival_rate) / 3
    assert law.probabilities @ square == pytest.approx(0, abs=1e-6)


def test_high_load() -> None:
    """The mean square of all jobs does not drift, at the accuracy that the function promises."""
    system = ms.System(0.97, [ms.Pool(1, 1)], n_servers=2)
    law = stationary_law(system, ms.policy("sq", d=2))
    busy = (law.jobs > 0).mean(axis=1)
    jobs = law.jobs.mean(axis=1)
    square = 2 * jobs * (busy - 0.97) - (busy + 0.97) / 2
    assert law.probabilities @ square == pytest.approx(0, abs=1e-10)
    assert law.probabilities.sum() == pytest.approx(1, abs=1e-13)
    assert law.residual < 1e-12
    assert law.truncation_error < 1e-12


def test_joining_rate_balances_departures() -> None:
    system = ms.System(0.6, UNEQUAL, n_servers=6)
    policy = ms.policy("scheme1", d=[2, 2])
    result = exact(system, policy)
    tails = result.queue_tail.values
    served = system.speeds[:, None] * tails[:, 1:]
    occupied = tails[:, :-1] - tails[:, 1:]
    flow = result.joining_rate.values[:, :-1] * occupied
    # Across a level as many jobs go up as down: eq. (4.11) of arXiv:1502.05786 in the mean.
    assert np.nan_to_num(flow) == pytest.approx(served - np.append(served[:, 1:], [[0]] * 2, 1))


def test_erlang_loss() -> None:
    n, rate = 5, 1.3
    system = ms.System(rate, [ms.Pool(1, 1, buffer=1)], n_servers=n)
    result = exact(system, ms.policy("sq", d=n))
    terms = [(n * rate) ** k / math.factorial(k) for k in range(n + 1)]
    assert float(result.blocking_probability) == pytest.approx(terms[-1] / sum(terms), rel=1e-12)
    assert float(result.sojourn_mean) == pytest.approx(1, rel=1e-12)
    assert float(result.waiting_probability) == 0


@pytest.mark.parametrize("policy", [ms.policy("jsq"), ms.policy("jiq"), ms.policy("sed")], ids=str)
def test_erlang_loss_of_announced_servers(policy: Policy) -> None:
    """A pool of servers without room to wait loses as many jobs whoever picks an idle one."""
    system = ms.System(1.3, [ms.Pool(1, 1, buffer=1)], n_servers=5)
    result, other = exact(system, policy), exact(system, ms.policy("sq", d=5))
    for name in ("blocking_probability", "jobs_per_server"):
        assert float(result[name]) == pytest.approx(float(other[name]), rel=1e-12)
    assert float(result.messages_per_job) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("pools", [UNEQUAL, bounded(UNEQUAL, [2, 3])], ids=["unbounded", "bounded"])
@pytest.mark.parametrize(
    ("policy", "same"),
    [
        (ms.policy("jsq"), ms.policy("sq", d=3)),
        (ms.policy("jsq", ties="fastest"), ms.policy("sq", d=3, ties="fastest")),
        (ms.policy("sed"), ms.policy("sed", d=3)),
        (ms.policy("threshold", threshold=1), ms.policy("jiq")),
    ],
    ids=["jsq", "jsq fastest", "sed", "threshold"],
)
def test_policies_that_are_the_same(policy: Policy, same: Policy, pools: list[ms.Pool]) -> None:
    system = ms.System(0.4, pools, n_servers=3)
    one, other = (exact(system, policy, tolerance=1e-6) for policy in (policy, same))
    for name in ("queue_tail", "sojourn_mean", "waiting_probability", "blocking_probability"):
        assert one[name].values == pytest.approx(other[name].values, abs=1e-12)


def test_jiq_of_two_servers() -> None:
    """171/28 jobs at each of two servers of load 0.9."""
    result = exact(ms.System(0.9, [ms.Pool(1, 1)], n_servers=2), ms.policy("jiq"), tolerance=1e-6)
    assert float(result.jobs_per_server) == pytest.approx(171 / 28, rel=2e-6)
    # One message of every server that becomes idle, and the idle ones do not wait.
    waits = float(result.waiting_probability)
    assert float(result.messages_per_job) == pytest.approx(1 - waits, rel=1e-6)


def test_a_slow_pool_saturates_below_a_load_of_one() -> None:
    """While the slow one of two servers is busy, the fast one is a queue that half of the arrivals
    join, and all if it is idle; it is busy for 2/7 of the time at 0.3, and for 10/23 at 0.5."""
    pools = [ms.Pool("1/2", "1/5"), ms.Pool("1/2", "9/5")]
    stable = exact(ms.System(0.3, pools, 2), ms.policy("jiq"), tolerance=1e-3)
    assert float(stable.stability_margin) == pytest.approx(1 - 0.3 * 2 / 7 / 2 / 0.1, rel=1e-5)
    with pytest.raises(ms.UnstableSystem, match=r"sends pool 0 0\.108696 jobs") as error:
        exact(ms.System(0.5, pools, 2), ms.policy("jiq"))
    assert error.value.pools == (0,)
    assert "stability_margin" not in exact(ms.System(0.1, pools, 2), ms.policy("jiq"))


def test_states_are_counted_as_listed() -> None:
    caps = ((4, 3, 3), (2,), (5, 1))
    states = enumerate_states(caps)
    assert len(states.jobs) == count_states(caps)
    assert len({tuple(row) for row in states.jobs.tolist()}) == len(states.jobs)
    for server, targets in enumerate(states.more):
        source = np.flatnonzero(targets >= 0)
        step = states.jobs[targets[source]] - states.jobs[source]
        assert (step == np.eye(6, dtype=int)[server]).all()


def test_refusals() -> None:
    policy = ms.policy("sq", d=2)
    large = ms.System(0.9, [ms.Pool(1, 1)], n_servers=1000)
    with pytest.raises(ValueError, match=r"n_servers = 1000: .* at least 4.2e\+10 states .* GB"):
        exact(large, policy)
    small = ms.System(0.9, [ms.Pool(1, 1)], n_servers=3)
    with pytest.raises(ValueError, match="at most max_states = 1000 states"):
        exact(small, policy, max_states=1000)
    with pytest.raises(ValueError, match=r"tolerance = 0\.0: must lie in"):
        exact(small, policy, tolerance=0)
    with pytest.raises(ValueError, match="n_servers = None: must be an integer"):
        exact(ms.System(0.9, [ms.Pool(1, 1)]), policy)
    with pytest.raises(ValueError, match="d = 4: must be at most 3"):
        exact(small, ms.policy("sq", d=4))


@pytest.mark.parametrize("name", ["sq", "jsq", "random"])
def test_too_many_states_are_foreseen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No chain of more states than a fiftieth of the bound is built to find that it is too low."""
    built: list[int] = []

    def build(*arguments: object) -> Chain:
        chain = build_chain(*arguments)  # type: ignore[arg-type]
        built.append(len(chain.states.total))
        return chain

    monkeypatch.setattr(stationary, "build_chain", build)
    policy = ms.policy(name, d=2) if name == "sq" else ms.policy(name)
    with pytest.raises(ValueError, match=r"needs at least .* states .* max_states = 3000000"):
        ms.exact(ms.System(0.99, [ms.Pool(1, 1)], n_servers=20), policy)
    assert max(built) < 60_000
