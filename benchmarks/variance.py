"""What control variates and common random numbers are worth.

Run ``uv run python benchmarks/variance.py``.
"""

import statistics
import time

import numpy as np

import manyserver as ms
from manyserver.compare import compare
from manyserver.policies import Policy
from manyserver.simulation.counts_estimator import CountsEstimator
from manyserver.simulation.replica import step_rate
from manyserver.simulation.sampled_replica import SampledReplica
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
BATCHES = 120
LONGEST = 25.0
"""In relaxation times of the mean field."""
ROUNDS = 9
STEPS = 2**20


def variance_table() -> None:
    """Print by what factor control variates reduce the variance, at equal simulated time."""
    print("variance without control variates over that with them, at equal simulated time")
    print(f"{'':30} {'servers':>7} {'load':>5} {'jobs':>9} {'waiting':>9} {'batches':>7} {'p':>3}")
    for name, (pools, policy) in CASES.items():
        for n_servers in (100, 10_000):
            for load in (0.7, 0.9):
                system = ms.System(load, pools, n_servers=n_servers)
                length = BATCHES * LONGEST * ms.relaxation_time(system, policy) / 8
                controlled, plain = (
                    ms.simulate(system, policy, horizon=length, control_variates=wanted)
                    for wanted in (True, False)
                )
                ratios = [
                    float(plain[output + "_half_width"] / controlled[output + "_half_width"]) ** 2
                    for output in ("jobs_per_server", "waiting_probability")
                ]
                print(
                    f"{name:30} {n_servers:7} {load:5} {ratios[0]:9.0f} {ratios[1]:9.0f} "
                    f"{int(controlled.n_batches):7} {int(controlled.n_controls):3}",
                    flush=True,
                )


def cost_table() -> None:
    """Print the part of the time that sampling adds."""
    print("\ntime that sampling adds, over the time without")
    print(f"{'':30} {'servers':>7} {'time between':>12} {'added':>6}")
    equal = {"Scheme 1 (2,2), equal speeds": (EQUAL, SCHEME1)}
    random = {"random": (ONE_POOL, ms.policy("naive_split"))}
    for name, (pools, policy) in (CASES | equal | random).items():
        for n_servers in (10, 100, 10_000):
            system = ms.System(0.9, pools, n_servers=n_servers)
            start = ms.fixed_point(system, policy).queue_tail.values
            settings = checked_settings(system)
            period = CountsEstimator(system, policy, start, 1.0, 1.0, settings).sample_steps
            replica = SampledReplica(system, policy, start, (1,))
            replica.advance(1, period, period)
            pieces = max(1, STEPS // period)
            turns = [
                (seconds(replica, pieces, period, None), seconds(replica, pieces, period, period))
                for _ in range(ROUNDS)
            ]
            added = statistics.median(sampled / plain - 1 for plain, sampled in turns)
            between = period / step_rate(system)
            print(f"{name:30} {n_servers:7} {between:12.2f} {added:6.1%}", flush=True)


def seconds(replica: SampledReplica, samples: int, steps: int, period: int | None) -> float:
    """Return the CPU time of a run."""
    start = time.thread_time()
    replica.advance(1, samples * steps, period)
    return time.thread_time() - start


def compare_table() -> None:
    """Print what common random numbers do for a difference in the mean sojourn time."""
    print("\nvariance of a difference from independent runs, over that with common random numbers")
    print("(plain: no control variates; controlled: in both; all: what is gained together)")
    print(f"{'':30} {'servers':>7} {'load':>5} {'plain':>8} {'controlled':>10} {'all':>10}")
    for n_servers in (100, 10_000):
        for load in (0.7, 0.9):
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
                ratios = np.array(
                    [
                        plain.variance_ratio[1],
                        controlled.variance_ratio[1],
                        controlled.variance_ratio_plain[1],
                    ]
                )
                print(
                    f"{name:30} {n_servers:7} {load:5} {ratios[0]:8.1f} {ratios[1]:10.1f} "
                    f"{ratios[2]:10.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    variance_table()
    cost_table()
    compare_table()
