"""The kernel that follows jobs, against queues that are known and against the other kernels."""

import itertools

import numpy as np
import pytest
import xarray as xr
from scipy.special import stdtrit
from tests.registry import POOLS, policies
from tests.simulation.job_twin import JobTwin

import manyserver as ms
from manyserver.policies import Policy
from manyserver.policies.pull import Pull
from manyserver.simulation import Run, checked_settings, make_estimator
from manyserver.simulation.jobs.replica import JobReplica
from manyserver.sizes import SizeLaw
from manyserver.start import limit_start

SQ2 = ms.policy("sq", d=2)
RANDOM = ms.policy("random")
ONE_POOL = [ms.Pool(1, 1)]
TWO_POOLS = [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")]
HYPER = ms.size_law("hyperexponential", scv=4)
START = np.array([[1.0, 0.75, 0.5, 0.25]] * 3)


def depends_on_all(policy: Policy) -> bool:
    some = ms.System(0.8, POOLS, n_servers=12)
    return isinstance(policy, Pull) or policy.sampling(some).depends_on_all


def standard_error(result: xr.Dataset, name: str) -> np.ndarray:
    quantile = stdtrit(float(result.n_batches) - 1 - float(result.n_controls), 0.975)
    return np.asarray(result[name + "_half_width"].values / quantile)


def assert_close(result: xr.Dataset, name: str, expected: object, error: float = 0.0) -> None:
    """Within 5 standard errors of 32 batches: fails for right code with probability 2e-5."""
    difference = np.abs(result[name].values - expected)
    assert (difference <= 5 * np.hypot(standard_error(result, name), error) + 1e-12).all(), name


# One path, step by step


@pytest.mark.parametrize("ps", [True, False], ids=["ps", "fcfs"])
@pytest.mark.parametrize("policy", [p for p in policies() if not depends_on_all(p)], ids=str)
def test_twin_follows_the_same_path(policy: Policy, ps: bool, seed: int) -> None:
    """A list of events that are carried out one by one gives the same jobs at the same times."""
    buffers = [3, None, 5]
    pools = [ms.Pool(p.fraction, p.speed, b) for p, b in zip(POOLS, buffers, strict=True)]
    system = ms.System(0.8, pools, n_servers=12)
    sizes = ms.size_law("hyperexponential", scv=2)
    replica = JobReplica(system, policy, sizes, ps, START, (seed, 1))
    twin = JobTwin(replica)
    batches, pieces, length = 2, 3, 1.5
    measured = replica.measure(batches, pieces, length)
    twin.run(batches * pieces * length)
    for name, table in {"tails": measured.tails, "joins": measured.joins}.items():
        expected = twin.pieces(name, batches * pieces, length, table.shape[2])
        assert table == pytest.approx(expected, abs=1e-9), name
    assert measured.totals[:, 1].sum() == twin.blocked
    assert measured.time_in_system == pytest.approx(twin.time_in_system())
    assert measured.unfinished == 0
    for batch in range(batches):
        jobs = twin.arrived_in(batch, pieces * length)
        moments = measured.records.moments[batch].sum(axis=0)
        sojourn = np.array([job.left - job.arrived for job in jobs])
        assert measured.records.sojourn[batch].sum() == len(jobs)
        assert moments[:2] == pytest.approx([sojourn.sum(), (sojourn**2).sum()])
        if ps:
            slowdown = np.array([job.size for job in jobs])
            assert measured.records.slowdown[batch, :, 0].sum() == len(jobs)
            total = (sojourn / slowdown).sum()
            assert measured.records.slowdown[batch, :, 1].sum() == pytest.approx(total)
        else:
            waits = np.array([job.began - job.arrived for job in jobs])
            assert moments[2:] == pytest.approx([waits.sum(), (waits**2).sum()], abs=1e-9)


@pytest.mark.parametrize("ps", [True, False], ids=["ps", "fcfs"])
def test_more_room_changes_nothing(ps: bool, seed: int) -> None:
    """Rows that grow on the way hold the same jobs as rows that are long from the start."""
    system = ms.System(0.95, ONE_POOL, n_servers=5)
    narrow = JobReplica(system, RANDOM, HYPER, ps, np.ones((1, 4)), (seed, 2))
    wide = JobReplica(system, RANDOM, HYPER, ps, np.ones((1, 4)), (seed, 2))
    for _ in range(4):
        wide._grow()
    one, other = (replica.measure(2, 5, 20.0) for replica in (narrow, wide))
    assert narrow.levels >= 16
    levels = one.tails.shape[2]
    assert one.tails == pytest.approx(other.tails[:, :, :levels], abs=1e-9)
    assert one.records.moments == pytest.approx(other.records.moments)
    assert (one.records.sojourn == other.records.sojourn).all()


@pytest.mark.parametrize("ps", [True, False], ids=["ps", "fcfs"])
@pytest.mark.parametrize(("name", "parameters"), [("jsq", {}), ("jiq", {}), ("sed", {})])
def test_announced_servers_are_in_order(
    name: str, parameters: dict[str, int], ps: bool, seed: int
) -> None:
    """Classes hold the servers of their code, and pages those that are due on their days."""
    system = ms.System(0.9, POOLS, n_servers=40)
    policy = ms.policy(name, **parameters)
    replica = JobReplica(system, policy, ms.size_law("pareto", shape=1.5), ps, START, (seed, 14))
    replica.measure(1, 7, 3.0)
    known, codes = replica.announced, replica.servers.code[:40].astype(int)
    assert (known.place[known.order] == np.arange(40)).all()
    classes = np.searchsorted(known.border, np.arange(40), side="right") - 1
    assert (codes[known.order] == classes).all()
    due = replica.servers.due[:40]
    on_page = {}
    for page in range(len(known.page)):
        server = known.page[page]
        while server != -1:
            on_page[int(server)] = page
            server = known.after[server]
    busy = np.flatnonzero(np.isfinite(due))
    assert sorted(on_page) == busy.tolist()
    days = np.floor(due[busy] * known.day[0]).astype(int) % len(known.page)
    assert [on_page[int(server)] for server in busy] == days.tolist()
    assert (due > replica.now).all()


def test_routers_know_the_idle_servers(seed: int) -> None:
    """Every idle server is listed once, by the router that it told."""
    system = ms.System(0.7, ONE_POOL, n_servers=40)
    replica = JobReplica(system, ms.policy("pull", routers=3), HYPER, True, START[:1], (seed, 15))
    replica.measure(1, 7, 3.0)
    known = replica.routers
    idle = np.flatnonzero(replica.servers.code[:40] == 0)
    listed = [row[:held].tolist() for row, held in zip(known.listed, known.held, strict=True)]
    assert sorted(itertools.chain(*listed)) == idle.tolist()
    for router, servers in enumerate(listed):
        assert (known.router[servers] == router).all()
        assert known.spot[servers].tolist() == list(range(len(servers)))


# Queues that are known


SIZES = [
    ms.size_law("deterministic"),
    ms.size_law("exponential"),
    HYPER,
    ms.size_law("lognormal", scv=2),
]


@pytest.mark.parametrize("sizes", SIZES[:3], ids=str)
def test_pollaczek_khinchine(sizes: SizeLaw, seed: int) -> None:
    """Random routing makes M/G/1 queues: mean wait rho (1 + scv) / (2 (1 - rho))."""
    system = ms.System(0.6, ONE_POOL, n_servers=100)
    result = ms.simulate(
        system, RANDOM, sizes=sizes, discipline="fcfs", seed=(seed, 3), precision=0.03
    )
    wait = 0.6 * (1 + sizes.scv) / (2 * 0.4)
    assert_close(result, "waiting_mean", wait)
    assert_close(result, "sojourn_mean", 1 + wait)
    assert_close(result, "jobs_per_server", 0.6 * (1 + wait))
    assert_close(result, "waiting_probability", 0.6)
    assert float(result.little_residual) < 1e-11
    assert bool(result.interval_reliable)
    assert "note" not in result.attrs


@pytest.mark.parametrize("sizes", [*SIZES, ms.size_law("power_law")], ids=str)
def test_processor_sharing_is_insensitive(sizes: SizeLaw, seed: int) -> None:
    """M/G/1-PS queues of two speeds: tails rho**k, mean 1/(C - a), slowdown 1/(C - a) per size."""
    system = ms.System(0.6, TWO_POOLS, n_servers=100)
    policy = ms.policy("random", probabilities=[0.25, 0.75])
    result = ms.simulate(
        system, policy, sizes=sizes, discipline="ps", seed=(seed, 4), horizon=600.0
    )
    rates, speeds = 0.6 * np.array([0.5, 1.5]), system.speeds
    sojourns = 1 / (speeds - rates)
    assert_close(result, "pool_sojourn_mean", sojourns)
    assert_close(result, "queue_mean", rates * sojourns)
    assert_close(result, "pool_share", [0.25, 0.75])
    level = np.arange(5)
    assert_close(result.isel(level=level), "queue_tail", (rates / speeds)[:, None] ** level)
    assert float(result.little_residual) < 1e-11
    if sizes.name != "deterministic":
        assert_close(result, "slowdown_mean", np.full(10, 0.25 * sojourns[0] + 0.75 * sojourns[1]))


@pytest.mark.parametrize("discipline", ["ps", "fcfs"])
def test_sojourn_law_of_mm1(discipline: str, seed: int) -> None:
    """Under FCFS the sojourn is exponential; under PS it comes from the tagged-job chain."""
    system = ms.System(0.7, ONE_POOL, n_servers=100)
    result = ms.simulate(system, RANDOM, discipline=discipline, seed=(seed, 5), horizon=2000.0)
    law = ms.sojourn_law(system, RANDOM, discipline=discipline)
    names = ["sojourn_mean", "sojourn_variance", "sojourn_quantile", "pool_sojourn_quantile"]
    for name in names + (["waiting_variance", "waiting_quantile"] if discipline == "fcfs" else []):
        # Quantiles are known to the width of a bin.
        assert_close(result, name, law[name].values, 0.002 * float(law.sojourn_mean))
    if discipline == "fcfs":
        exact = -np.log(1 - law["quantile"].values) / 0.3
        assert law.sojourn_quantile.values == pytest.approx(exact)


@pytest.mark.parametrize("discipline", ["ps", "fcfs"])
def test_the_limit_of_scheme_1(discipline: str, seed: int) -> None:
    """Variance 2.5674 under FCFS and 3.8236 under PS, up to the 1/N term."""
    system = ms.System(0.9, TWO_POOLS, n_servers=1000)
    policy = ms.policy("scheme1", d=[2, 2])
    result = ms.simulate(system, policy, discipline=discipline, seed=(seed, 6), horizon=150.0)
    law = ms.sojourn_law(system, policy, discipline=discipline)
    for name in ("sojourn_mean", "sojourn_variance", "sojourn_quantile", "pool_sojourn_mean"):
        value = law[name].values
        assert_close(result, name, value, 0.003 * np.abs(value).max())


EXACT = [
    ("sq", {"d": 2}, 0.8),
    ("jsq", {}, 0.8),
    ("jiq", {}, 0.8),
    ("sed", {}, 0.8),
    ("pull", {"routers": 2}, 0.6),
]


@pytest.mark.parametrize("discipline", ["ps", "fcfs"])
@pytest.mark.parametrize(("name", "parameters", "rate"), EXACT)
def test_small_systems(
    name: str, parameters: dict[str, int], rate: float, discipline: str, seed: int
) -> None:
    """Exponential sizes have the exact chain's means under both disciplines, also with buffers."""
    pools = [ms.Pool("1/2", "2/3", buffer=3), ms.Pool("1/2", "4/3", buffer=2)]
    system, policy = ms.System(rate, pools, n_servers=4), ms.policy(name, **parameters)
    with_moments = name != "pull"
    exact = ms.exact(system, policy, moments=with_moments)
    result = ms.simulate(
        system,
        policy,
        discipline=discipline,
        seed=(seed, 7),
        horizon=3000.0,
        replications=4,
        moments=with_moments,
    )
    for variable in (
        "sojourn_mean",
        "jobs_per_server",
        "queue_mean",
        "blocking_probability",
        "waiting_probability",
    ):
        assert_close(result, variable, exact[variable].values)
    if name == "pull":
        variable = "empty_router_probability"
        assert_close(result, variable, exact[variable].values)
    if with_moments:
        assert_close(result, "jobs_per_server_variance", float(exact.jobs_per_server_variance))
        for variable in ("queue_tail_variance", "occupancy_covariance"):
            # What varies; what cannot be has no half-width.
            varies = np.abs(exact[variable].values) > 1e-9
            assert_close(
                result.assign(
                    {
                        name: result[name].where(varies, 0.0)
                        for name in (variable, variable + "_half_width")
                    }
                ),
                variable,
                np.where(varies, exact[variable].values, 0.0),
            )
    if discipline == "fcfs":
        law = ms.sojourn_law(system, policy, state=exact)
        for variable in ("sojourn_variance", "waiting_mean", "pool_sojourn_mean", "pool_share"):
            assert_close(result, variable, law[variable].values)


def test_phase_type_fixed_point(seed: int) -> None:
    """SQ(2), FCFS: many servers are near the limit, which is far from that of other sizes."""
    system = ms.System(0.8, ONE_POOL, n_servers=1000)
    result = ms.simulate(system, SQ2, sizes=HYPER, discipline="fcfs", seed=(seed, 8), horizon=150.0)
    limit = ms.fixed_point(system, SQ2, sizes=HYPER, discipline="fcfs")
    assert_close(result, "sojourn_mean", float(limit.sojourn_mean), 0.005)
    tails = limit.queue_tail.values[:, :5]
    assert_close(result.isel(level=np.arange(5)), "queue_tail", tails, 0.001)


def test_table_1(seed: int) -> None:
    """Constant sizes under PS, Scheme 1, C = (2/3, 4/3), against values measured elsewhere."""
    system = ms.System(0.7, TWO_POOLS, n_servers=100)
    policy = ms.policy("scheme1", d=[2, 2])
    result = ms.simulate(
        system, policy, sizes=ms.size_law("deterministic"), seed=(seed, 9), horizon=300.0
    )
    assert_close(result, "sojourn_mean", 1.17753, 0.00105 / 2)


# What is said about a run


@pytest.mark.parametrize("discipline", ["ps", "fcfs"])
def test_intervals_cover_what_they_say(discipline: str, seed: int) -> None:
    """M/G/1 queues, the shortest runs: with 95 %, 39 of 50 or fewer happen once in 30,000."""
    system = ms.System(0.7, ONE_POOL, n_servers=4)
    wait = 0.7 * (1 + (HYPER.scv if discipline == "fcfs" else 1)) / (2 * 0.3)
    inside = 0
    for number in range(50):
        result = ms.simulate(
            system,
            RANDOM,
            sizes=HYPER,
            discipline=discipline,
            seed=(seed, 16, number),
            precision=0.9,
        )
        assert bool(result.interval_reliable)
        error = abs(float(result.sojourn_mean) - 1 - wait)
        inside += error <= float(result.sojourn_mean_half_width)
    assert inside >= 40


@pytest.mark.parametrize("discipline", ["ps", "fcfs"])
def test_more_replications_cost_hardly_more_than_longer_ones(discipline: str) -> None:
    """Also where single jobs are so large that the warm-up is long for them alone."""
    system = ms.System(0.5, ONE_POOL, n_servers=10)
    heavy = ms.size_law("pareto", shape=2.1)
    limit = limit_start(system, SQ2)
    settings = checked_settings(system, precision=0.5)
    for sizes in (HYPER, heavy):
        run = Run(make_estimator(system, SQ2, *limit, settings, sizes, discipline))
        run.simulate(lambda _: None)
        assert run.plan.warm_up <= run.plan.measured


def test_threads_change_nothing(seed: int) -> None:
    system = ms.System(0.8, TWO_POOLS, n_servers=20)
    policy = ms.policy("scheme2", d=[2, 2])
    one, three = (
        ms.simulate(system, policy, sizes=HYPER, seed=(seed, 10), horizon=50.0, threads=threads)
        for threads in (1, 3)
    )
    assert one.identical(three)
    other = ms.simulate(system, policy, sizes=HYPER, seed=(seed, 11), horizon=50.0)
    assert float(one.sojourn_mean) != float(other.sojourn_mean)


def test_infinite_variance_is_said(seed: int) -> None:
    system = ms.System(0.5, ONE_POOL, n_servers=50)
    sizes = ms.size_law("power_law")
    for discipline in ("ps", "fcfs"):
        result = ms.simulate(
            system, SQ2, sizes=sizes, discipline=discipline, seed=(seed, 12), horizon=20.0
        )
        assert not bool(result.interval_reliable)
        assert "infinite variance" in result.attrs["note"]
        assert result.attrs["warm_up_time"] > 250
        assert int(result.n_unfinished) == 0
    assert "mean waiting" in result.attrs["note"]


def test_sizes_that_need_an_endless_warm_up_are_refused() -> None:
    system = ms.System(0.5, ONE_POOL, n_servers=50)
    heavy = ms.size_law("pareto", shape=1.1)
    with pytest.raises(ValueError, match=r"sizes = Pareto\(shape=1.1.* max_events = 1e\+10"):
        ms.simulate(system, SQ2, sizes=heavy, horizon=1.0)


def test_too_few_events_are_said(seed: int) -> None:
    system = ms.System(0.9, ONE_POOL, n_servers=50)
    result = ms.simulate(
        system, SQ2, sizes=HYPER, seed=(seed, 13), precision=1e-4, max_events=20_000
    )
    assert not bool(result.precision_met)
    assert not bool(result.interval_reliable)
    assert int(result.n_events) < 40_000


BAD = [
    ({"sizes": "exponential"}, "sizes = 'exponential': must be a law"),
    ({"sizes": ms.size_law("exponential", mean=2)}, "sizes: have mean 2; must have mean 1"),
    ({"discipline": "lifo"}, "discipline = 'lifo': must be one of ps, fcfs"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD)
def test_bad_parameters(parameters: dict[str, object], message: str) -> None:
    system = ms.System(0.9, ONE_POOL, n_servers=50)
    with pytest.raises(ValueError, match=message):
        ms.simulate(system, SQ2, **parameters)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=message):
        ms.fixed_point(system, SQ2, **parameters)  # type: ignore[arg-type]
