"""Speed of the simulation kernels, against kernels written by hand and a textbook simulation.

The first table has the time of a step of the kernel that goes server by server and of the one for
replications in lockstep, over that of the best kernel that was written for the policy alone, all
in the same turns. The second one has Gillespie's method as in a textbook. The third one has the
kernel on counts, whose cost is to be compared with that of SQ(2) server by server.

Run ``uv run python benchmarks/kernel.py``.
"""
# ruff: noqa: NPY002 -- the textbook uses NumPy's global generator, the fastest one of numba's

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from by_hand import four_pools, one_pool, two_pools
from numba import njit

import manyserver as ms
from manyserver.policies import Policy
from manyserver.simulation.kernels import make_replica
from manyserver.simulation.lanes import LANES
from manyserver.simulation.lockstep_replicas import Lockstep
from manyserver.simulation.replica import Replica
from manyserver.simulation.sampled_replica import SampledReplica
from manyserver.start import limit_start

ROUNDS = 7
STEPS = 2_000_000
SIZES = (100, 10_000, 1_000_000)
LEVELS = 64
CASES: dict[str, tuple[list[ms.Pool], Policy]] = {
    "SQ(2)": ([ms.Pool(1, 1)], ms.policy("sq", d=2)),
    "Scheme 1 (2,2)": (
        [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")],
        ms.policy("scheme1", d=[2, 2]),
    ),
    "Scheme 2 (2,2)": (
        [ms.Pool("1/2", "1/5"), ms.Pool("1/2", "9/5")],
        ms.policy("scheme2", d=[2, 2]),
    ),
    "four pools, d = 1": (
        [ms.Pool("1/4", speed) for speed in ("2/5", "4/5", "6/5", "8/5")],
        ms.policy("scheme1", d=[1, 1, 1, 1]),
    ),
}

SLOW_AND_FAST = [ms.Pool("1/2", "1/5"), ms.Pool("1/2", "9/5")]
COUNTS_SIZES = (100, 10_000, 1_000_000, 10_000_000)
COUNTS_CASES: dict[str, tuple[list[ms.Pool], Policy]] = {
    "JSQ": ([ms.Pool(1, 1)], ms.policy("jsq")),
    "JIQ": ([ms.Pool(1, 1)], ms.policy("jiq")),
    "JIQ, then SQ(2)": ([ms.Pool(1, 1)], ms.policy("jiq", d=2)),
    "JIQ, slow and fast": (SLOW_AND_FAST, ms.policy("jiq")),
    "JSQ, slow and fast": (SLOW_AND_FAST, ms.policy("jsq")),
    "SED, four pools": (CASES["four pools, d = 1"][0], ms.policy("sed")),
    "threshold 3, slow and fast": (SLOW_AND_FAST, ms.policy("threshold", threshold=3)),
}


@njit
def textbook(jobs, bounds, speeds, arrival_rate, choices, rank, tails, areas, events):  # type: ignore[no-untyped-def]
    """Gillespie's direct method: an exponential time and a search over the rates, each event.

    `jobs` (server,) and `tails` (pool, level) are changed, `areas` (pool, level) gets the time
    integral of the tails.
    """
    n_pools = len(speeds)
    # Busy servers of each pool, in front of the idle ones, so that one can be picked.
    order = np.arange(len(jobs))
    place = np.arange(len(jobs))
    busy = np.zeros(n_pools, dtype=np.int64)
    for pool in range(n_pools):
        for server in range(bounds[pool], bounds[pool + 1]):
            if jobs[server] > 0:
                _swap(order, place, server, bounds[pool] + busy[pool])
                busy[pool] += 1
    looked = np.empty(choices.sum(), dtype=np.int64)
    highest = jobs.max()
    for _ in range(events):
        rate = arrival_rate
        for pool in range(n_pools):
            rate += speeds[pool] * busy[pool]
        wait = np.random.exponential(1.0 / rate)
        for pool in range(n_pools):
            for level in range(1, highest + 1):
                areas[pool, level] += tails[pool, level] * wait
        left = np.random.random() * rate - arrival_rate
        if left < 0:
            best, best_pool, best_rank, n_looked = -1, -1, 0, 0
            for pool in range(n_pools):
                start = n_looked
                for _ in range(choices[pool]):
                    server = np.random.randint(bounds[pool], bounds[pool + 1])
                    while _among(looked, start, n_looked, server):
                        server = np.random.randint(bounds[pool], bounds[pool + 1])
                    looked[n_looked] = server
                    n_looked += 1
                    here = rank[pool, jobs[server]]
                    if best < 0 or here < best_rank:
                        best, best_pool, best_rank = server, pool, here
            if jobs[best] == 0:
                _swap(order, place, best, bounds[best_pool] + busy[best_pool])
                busy[best_pool] += 1
            jobs[best] += 1
            highest = max(highest, jobs[best])
            tails[best_pool, jobs[best]] += 1
        else:
            pool = 0
            while pool < n_pools - 1 and left >= speeds[pool] * busy[pool]:
                left -= speeds[pool] * busy[pool]
                pool += 1
            server = order[bounds[pool] + np.random.randint(0, busy[pool])]
            tails[pool, jobs[server]] -= 1
            jobs[server] -= 1
            if jobs[server] == 0:
                busy[pool] -= 1
                _swap(order, place, server, bounds[pool] + busy[pool])


@njit
def _among(looked, start, stop, server):  # type: ignore[no-untyped-def]
    found = False
    for i in range(start, stop):
        found |= looked[i] == server
    return found


@njit
def _swap(order, place, server, to):  # type: ignore[no-untyped-def]
    """Move a server to a place, and the server there to its place."""
    other, here = order[to], place[server]
    order[to], order[here] = server, other
    place[server], place[other] = to, here


def kernel_run(system: ms.System, policy: Policy, start: np.ndarray) -> Callable[[], int]:
    """Return a function that runs the kernel and returns the number of useful events."""
    replica = SampledReplica(system, policy, start, (1,))
    return lambda: int(replica.advance(1, STEPS).events.sum())


def textbook_run(system: ms.System, policy: Policy, start: np.ndarray) -> Callable[[], int]:
    """Return a function that runs the textbook simulation of as many events."""
    replica = SampledReplica(system, policy, start, (1,))
    jobs = np.concatenate(replica.jobs)
    tails = replica.tail_counts()[:, :LEVELS].astype(float)
    arguments = (
        np.cumsum([0, *system.counts]),
        system.speeds,
        system.arrival_rate * sum(system.counts),
        np.array([policy.parameters["d"]]).ravel(),
        policy.rank_table(system, LEVELS),
        tails,
        np.zeros(tails.shape),
    )

    def run() -> int:
        textbook(jobs, *arguments, STEPS // 4)
        return STEPS // 4

    return run


def seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU time of a run, and what it returns, its useful events."""
    start = time.thread_time()
    events = run()
    return time.thread_time() - start, events


def main() -> None:
    """Print the tables."""
    hand_table()
    textbook_table()
    counts_table()


MORE_CASES: dict[str, tuple[list[ms.Pool], Policy]] = {
    "SQ(2), slow and fast": (CASES["Scheme 1 (2,2)"][0], CASES["SQ(2)"][1]),
    "SQ(10)": (CASES["SQ(2)"][0], ms.policy("sq", d=10)),
    "random": (CASES["SQ(2)"][0], ms.policy("random")),
}
"""Without a kernel by hand."""


def hand_table() -> None:
    """Print the times of both kernels for policies that look at some servers."""
    columns = ("by hand", "alone", "lockstep", "alone/hand", "lockstep/hand", "lockstep/alone")
    print(f"{'ns/step':20} {'servers':>8} " + " ".join(f"{column:>14}" for column in columns))
    for name, (pools, policy) in (CASES | MORE_CASES).items():
        for n_servers in SIZES:
            system = ms.System(0.9, pools, n_servers=n_servers)
            start = limit_start(system, policy)[0]
            alone, *others = (
                SampledReplica(system, policy, start, (1, i)) for i in range(LANES + 1)
            )
            together = Lockstep(others)
            runs: list[Callable[[], Any]] = [
                partial(alone.advance, 1, STEPS),
                partial(together.advance_all, 1, STEPS // LANES),
            ]
            if name in CASES:
                runs.insert(0, hand_run(system, policy, alone))
            for run in runs:
                run()
            turns = [[seconds(run)[0] * 1e9 / STEPS for run in runs] for _ in range(ROUNDS)]
            times = np.array(turns).T
            if name not in CASES:
                times = np.insert(times, 0, np.nan, axis=0)
            ratios = [times[1] / times[0], times[2] / times[0], times[2] / times[1]]
            shown = " ".join(f"{np.median(values):14.2f}" for values in (*times, *ratios))
            print(f"{name:20} {n_servers:8} {shown}", flush=True)
    print()


def hand_run(system: ms.System, policy: Policy, replica: SampledReplica) -> Callable[[], None]:
    """Return a function that runs the kernel written by hand, from the state of a replica."""
    jobs = np.concatenate(replica.jobs).astype(np.uint8)
    areas = np.zeros(len(system.pools) * LEVELS, dtype=np.int64)
    rng = replica.rng[:4].copy()
    rates = [system.arrival_rate, *(system.fractions * system.speeds)[:-1]]
    shares = np.cumsum(rates) / (system.arrival_rate + 1)
    bounds = np.array([int(share * 2.0**64) for share in shares], dtype=np.uint64)
    if len(system.pools) == 1:
        return partial(one_pool, jobs, areas, rng, bounds[0], STEPS)
    if len(system.pools) == 4:
        return partial(four_pools, jobs, areas, rng, bounds, STEPS)
    slow, fast = system.speeds
    weights = np.array([round(fast / slow) if policy.name == "scheme2" else 1, 1])
    return partial(two_pools, jobs, areas, rng, bounds, weights, STEPS)


def counts_table() -> None:
    """Print the times of the kernel on counts."""
    print(f"\n{'on counts':28} {'servers':>8} {'ns/step':>8} {'SQ(2)':>7} {'ratio':>6}")
    one_pool, reference = CASES["SQ(2)"]
    for name, (pools, policy) in COUNTS_CASES.items():
        for n_servers in COUNTS_SIZES:
            system = ms.System(0.9, pools, n_servers=n_servers)
            # The array of codes of 10**7 servers does not fit into a cache.
            same = ms.System(0.9, one_pool, n_servers=min(n_servers, SIZES[-1]))
            replicas = [
                make_replica(at, of, limit_start(at, of)[0], (1,))
                for at, of in ((system, policy), (same, reference))
            ]
            turns = []
            for _ in range(ROUNDS + 1):
                turns.append([seconds(partial(run_steps, replica))[0] for replica in replicas])
            mine, its = (
                statistics.median(1e9 * turn[i] / STEPS for turn in turns[1:]) for i in (0, 1)
            )
            ratio = statistics.median(turn[0] / turn[1] for turn in turns[1:])
            print(f"{name:28} {n_servers:8} {mine:8.1f} {its:7.1f} {ratio:6.2f}", flush=True)


def run_steps(replica: Replica) -> int:
    """Run a kernel and return the number of useful events."""
    return int(replica.advance(1, STEPS).events.sum())


def textbook_table() -> None:
    """Print the times of the kernel that goes server by server."""
    print(f"{'':18} {'servers':>8} {'ns/step':>8} {'ns/event':>9} {'textbook':>9} {'ratio':>6}")
    for name, (pools, policy) in CASES.items():
        for n_servers in SIZES:
            system = ms.System(0.9, pools, n_servers=n_servers)
            start = ms.fixed_point(system, policy).queue_tail.values
            kernel, reference = (
                kernel_run(system, policy, start),
                textbook_run(system, policy, start),
            )
            kernel(), reference()
            turns = [(seconds(kernel), seconds(reference)) for _ in range(ROUNDS)]
            step = statistics.median(1e9 * mine[0] / STEPS for mine, _ in turns)
            event = statistics.median(1e9 * mine[0] / mine[1] for mine, _ in turns)
            other = statistics.median(1e9 * its[0] / its[1] for _, its in turns)
            ratio = statistics.median(
                (its[0] / its[1]) / (mine[0] / mine[1]) for mine, its in turns
            )
            print(
                f"{name:18} {n_servers:8} {step:8.1f} {event:9.1f} {other:9.1f} {ratio:6.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
