"""What control variates and common random numbers are worth."""

from collections.abc import Iterator
from functools import partial

import manyserver as ms
from benchmarks.driver import Row, benchmark, in_turns, ratios
from manyserver.compare import compare
from manyserver.policies import Policy
from manyserver.simulation.occupancy_estimator import OccupancyEstimator
from manyserver.simulation.replica import step_rate
from manyserver.simulation.server_replica import ServerReplica
from manyserver.simulation.settings import checked_settings

ONE_POOL = [ms.Pool(1, 1)]
NEAR = [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")]
FAR = [ms.Pool("1/2", "1/5"), ms.Pool("1/2", "9/5")]
EQUAL = [ms.Pool("1/2", 1), ms.Pool("1/2", 1)]
SQ2, SQ3 = ms.policy("sq", d=2), ms.policy("sq", d=3)
SCHEME1, SCHEME2 = ms.policy("scheme1", d=[2, 2]), ms.policy("scheme2", d=[2, 2])
CASES: dict[str, tuple[list[ms.Pool], Policy]] = {
    "SQ(2)": (ONE_POOL, SQ2),
    "Scheme 1 (2,2), C = (2/3,4/3)": (NEAR, SCHEME1),
    "Scheme 2 (2,2), C = (1/5,9/5)": (FAR, SCHEME2),
}
SIZES = (100, 10_000)
LOADS = (0.7, 0.9)
BATCHES = 120
LONGEST = 25.0
"""In relaxation times of the mean field."""
ROUNDS = 9
STEPS = 2**20


@benchmark("policy", "servers", "load")
def controls(quick: bool) -> Iterator[Row]:
    """What control variates gain.

    The variance without them over that with them, at equal simulated time, for the mean number of
    jobs and the waiting probability. Estimated from about 100 batches: repeatable within a factor
    of 1.5.
    """
    for name, (pools, policy) in CASES.items():
        for n_servers in SIZES[: 1 if quick else None]:
            for load in LOADS:
                system = ms.System(load, pools, n_servers=n_servers)
                length = BATCHES * LONGEST * ms.relaxation_time(system, policy) / 8
                controlled, plain = (
                    ms.simulate(system, policy, horizon=length, control_variates=wanted)
                    for wanted in (True, False)
                )
                jobs, waiting = (
                    float(plain[output + "_half_width"] / controlled[output + "_half_width"]) ** 2
                    for output in ("jobs_per_server", "waiting_probability")
                )
                yield {
                    "policy": name,
                    "servers": n_servers,
                    "load": load,
                    "jobs": jobs,
                    "waiting": waiting,
                    "controls": int(controlled.n_controls),
                }


@benchmark("policy", "servers", costs=["over no observations"])
def sampling(quick: bool) -> Iterator[Row]:
    """What it costs to sample control variates.

    CPU time of as many steps with and without observations, at load 0.9, in turns.
    """
    equal = {"Scheme 1 (2,2), equal speeds": (EQUAL, SCHEME1)}
    random = {"random": (ONE_POOL, ms.policy("naive_split"))}
    for name, (pools, policy) in (CASES | equal | random).items():
        for n_servers in (10, *SIZES)[: 2 if quick else None]:
            system = ms.System(0.9, pools, n_servers=n_servers)
            start = ms.fixed_point(system, policy).queue_tail.values
            settings = checked_settings(system)
            period = OccupancyEstimator(system, policy, start, 1.0, 1.0, settings).sample_steps
            advance = ServerReplica(system, policy, start, (1,)).advance
            steps = max(1, STEPS // period) * period
            runs = {
                "plain": partial(advance, 1, steps, None),
                "sampled": partial(advance, 1, steps, period),
            }
            spent = in_turns(runs, ROUNDS)
            yield {
                "policy": name,
                "servers": n_servers,
                "time between observations": period / step_rate(system),
                "over no observations": ratios(spent["sampled"], spent["plain"]),
            }


@benchmark("difference", "servers", "load")
def common_numbers(quick: bool) -> Iterator[Row]:
    """What common random numbers gain for a difference in the mean sojourn time.

    The variance from independent runs over that with common random numbers: without control
    variates, with them in both, and without them independently over with them in common, which is
    all that is gained.
    """
    for n_servers in SIZES[: 1 if quick else None]:
        for load in LOADS:
            near = [ms.System(rate, ONE_POOL, n_servers=n_servers) for rate in (load, load + 0.01)]
            speeds = ms.System(load, NEAR, n_servers=n_servers)
            for name, systems, policies in (
                ("SQ(2) and SQ(3)", near[:1], [SQ2, SQ3]),
                ("SQ(2), loads 0.01 apart", near, [SQ2]),
                ("Schemes 1 and 2, (2/3,4/3)", [speeds], [SCHEME1, SCHEME2]),
            ):
                length = BATCHES * LONGEST * ms.relaxation_time(systems[-1], policies[0]) / 8
                plain, controlled = (
                    compare(systems, policies, horizon=length, control_variates=wanted)
                    for wanted in (False, True)
                )
                yield {
                    "difference": name,
                    "servers": n_servers,
                    "load": load,
                    "plain": float(plain.variance_ratio[1]),
                    "controlled": float(controlled.variance_ratio[1]),
                    "all": float(controlled.variance_ratio_plain[1]),
                }
