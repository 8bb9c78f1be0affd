"""Speed of the simulation kernels, against kernels written by hand and a textbook simulation."""
# ruff: noqa: NPY002 -- the textbook uses NumPy's global generator, the fastest one of numba's

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numba import njit

import manyserver as ms
from benchmarks.by_hand import four_pools, one_pool, two_pools
from benchmarks.driver import Row, benchmark, in_turns, ratios
from manyserver.policies import Policy
from manyserver.simulation.kernels import make_replica
from manyserver.simulation.lanes import LANES
from manyserver.simulation.lockstep_replicas import Lockstep
from manyserver.simulation.replica import Replica
from manyserver.simulation.server_replica import ServerReplica
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
    replica = ServerReplica(system, policy, start, (1,))
    return lambda: int(replica.advance(1, STEPS).events.sum())


def textbook_run(system: ms.System, policy: Policy, start: np.ndarray) -> Callable[[], int]:
    """Return a function that runs the textbook simulation of as many events."""
    replica = ServerReplica(system, policy, start, (1,))
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


MORE_CASES: dict[str, tuple[list[ms.Pool], Policy]] = {
    "SQ(2), slow and fast": (CASES["Scheme 1 (2,2)"][0], CASES["SQ(2)"][1]),
    "SQ(10)": (CASES["SQ(2)"][0], ms.policy("sq", d=10)),
    "random": (CASES["SQ(2)"][0], ms.policy("random")),
}
"""Without a kernel by hand."""


@benchmark(
    "policy",
    "servers",
    costs=["alone, ns/step", "lockstep, ns/step", "alone over hand", "lockstep over hand"],
)
def steps(quick: bool) -> Iterator[Row]:
    """A step server by server and in lockstep, over that of a kernel written by hand.

    CPU time of steps at load 0.9, an arrival or a try to depart: of the kernel that goes server by
    server (alone), of the one that simulates 16 replications in lockstep, and of the fastest kernel
    that could be written for that policy alone (`benchmarks/by_hand.py`), which measures the queue
    tails and nothing else. In turns.
    """
    for name, (pools, policy) in (CASES | MORE_CASES).items():
        for n_servers in SIZES[: 2 if quick else None]:
            system = ms.System(0.9, pools, n_servers=n_servers)
            start = limit_start(system, policy)[0]
            alone, *others = (
                ServerReplica(system, policy, start, (1, i)) for i in range(LANES + 1)
            )
            runs: dict[str, Callable[[], Any]] = {
                "alone": partial(alone.advance, 1, STEPS),
                "lockstep": partial(Lockstep(others).advance_all, 1, STEPS // LANES),
            }
            if name in CASES:
                runs["hand"] = hand_run(system, policy, alone)
            spent = in_turns(runs, ROUNDS)
            row: Row = {"policy": name, "servers": n_servers}
            row |= {f"{key}, ns/step": per_step(times) for key, times in spent.items()}
            for above, below in (("alone", "hand"), ("lockstep", "hand"), ("lockstep", "alone")):
                if below in spent:
                    row[f"{above} over {below}"] = ratios(spent[above], spent[below])
            yield row


def hand_run(system: ms.System, policy: Policy, replica: ServerReplica) -> Callable[[], None]:
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


@benchmark("policy", "servers", costs=["ns/step", "over SQ(2)"])
def on_counts(quick: bool) -> Iterator[Row]:
    """The kernel on counts, over SQ(2) server by server.

    CPU time of steps at load 0.9, an arrival or a try to depart, of policies to which servers
    announce themselves; and of SQ(2) in the same turns, with at most a million servers, whose array
    of codes does not fit into a cache.
    """
    one_pool, reference = CASES["SQ(2)"]
    for name, (pools, policy) in COUNTS_CASES.items():
        for n_servers in COUNTS_SIZES[: 2 if quick else None]:
            system = ms.System(0.9, pools, n_servers=n_servers)
            same = ms.System(0.9, one_pool, n_servers=min(n_servers, SIZES[-1]))
            runs = {
                key: partial(run_steps, make_replica(at, of, limit_start(at, of)[0], (1,)))
                for key, at, of in (("counts", system, policy), ("SQ(2)", same, reference))
            }
            spent = in_turns(runs, ROUNDS)
            yield {
                "policy": name,
                "servers": n_servers,
                "ns/step": per_step(spent["counts"]),
                "SQ(2), ns/step": per_step(spent["SQ(2)"]),
                "over SQ(2)": ratios(spent["counts"], spent["SQ(2)"]),
            }


def run_steps(replica: Replica) -> int:
    """Run a kernel and return the number of useful events."""
    return int(replica.advance(1, STEPS).events.sum())


def per_step(spent: list[float]) -> list[float]:
    """Return the times of one step, in ns."""
    return [1e9 * seconds / STEPS for seconds in spent]


@benchmark("policy", "servers", costs=["ns/event", "over textbook"])
def by_servers(quick: bool) -> Iterator[Row]:
    """The kernel server by server, over a textbook Gillespie simulation.

    CPU time of useful events at load 0.9, arrivals and departures. The textbook is compiled by
    numba as well, and simulates the same system in the same turns.
    """
    for name, (pools, policy) in CASES.items():
        for n_servers in SIZES[: 2 if quick else None]:
            system = ms.System(0.9, pools, n_servers=n_servers)
            start = ms.fixed_point(system, policy).queue_tail.values
            runs = {
                "kernel": kernel_run(system, policy, start),
                "textbook": textbook_run(system, policy, start),
            }
            spent = in_turns(runs, ROUNDS, per_unit=True)
            yield {
                "policy": name,
                "servers": n_servers,
                "ns/event": [1e9 * one for one in spent["kernel"]],
                "textbook, ns/event": [1e9 * one for one in spent["textbook"]],
                "over textbook": ratios(spent["kernel"], spent["textbook"]),
            }
