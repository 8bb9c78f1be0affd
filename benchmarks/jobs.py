"""Speed of the kernel that follows jobs, against other kernels and packages."""
# ruff: noqa: NPY002 -- the heap uses NumPy's global generator, the fastest one of numba's

from collections.abc import Callable, Iterator

import numpy as np
from numba import njit

import manyserver as ms
from benchmarks.driver import Row, benchmark, in_turns, ratios
from benchmarks.models import Work, ciw_model, simpy_model
from manyserver.disciplines import discipline
from manyserver.simulation.jobs.records import make_records
from manyserver.simulation.jobs.replica import JobReplica
from manyserver.simulation.kernels import make_replica
from manyserver.simulation.lengths import steps_between_samples

ROUNDS = 9
ARRIVALS = 400_000
SIZES = (100, 1_000, 10_000, 100_000)
LOAD = 0.9
ROW = 64
SLOW_ARRIVALS = 2_000
SLOW_SERVERS = 100
SQ2 = ms.policy("sq", d=2)

Run = Callable[[], float]
"""Simulates for a while, and returns the number of arrivals."""


def system(n_servers: int) -> tuple[ms.System, np.ndarray]:
    """Return the system of all comparisons, and its queue tails."""
    one = ms.System(LOAD, [ms.Pool(1, 1)], n_servers=n_servers)
    return one, ms.fixed_point(one, SQ2).queue_tail.values


def numbers(n_servers: int) -> Run:
    """Simulate the numbers of jobs, sampled as in a run."""
    one, start = system(n_servers)
    replica = make_replica(one, SQ2, start, (1,))
    period = steps_between_samples(one, start, replica.rate, False)
    steps = period * max(1, int(ARRIVALS / LOAD / n_servers * replica.rate / period))
    return lambda: float(replica.advance(1, steps, period).accepted.sum())


def jobs(n_servers: int, service: str, law: str = "exponential", **parameters: object) -> Run:
    """Simulate jobs, with pieces as short as they can be in a run."""
    one, start = system(n_servers)
    order = discipline(service)
    replica = JobReplica(one, SQ2, ms.size_law(law, **parameters), order, start, (1,))
    time_each = ARRIVALS / LOAD / n_servers
    pieces = max(1, round(time_each))
    records = make_records(1, 1e9, 1, order.waiting, replica.bounds)

    def run() -> float:
        done = replica._advance(pieces, time_each / pieces, pieces, records)
        return float(done.totals[:, 0].sum())

    return run


# A list of events: the next departure of every busy server in an indexed heap


@njit
def _sift(heap, place, key, at, size):  # type: ignore[no-untyped-def]
    """Restore the order of a heap of servers after a change at one place."""
    server = heap[at]
    while at > 0 and key[server] < key[heap[(at - 1) // 2]]:
        heap[at] = heap[(at - 1) // 2]
        place[heap[at]] = at
        at = (at - 1) // 2
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and key[heap[child + 1]] < key[heap[child]]:
            child += 1
        if key[heap[child]] >= key[server]:
            break
        heap[at] = heap[child]
        place[heap[at]] = at
        at = child
    heap[at] = server
    place[server] = at


@njit
def heap_kernel(ps, rate, level, since, clock, tag, arrived, key, heap, place, arrivals, totals):  # type: ignore[no-untyped-def]
    """Textbook: take the next event, an arrival or a departure, until so many have arrived.

    Each server has one entry in the heap, infinite if it is idle. Under first come, first served
    `tag` holds the departures in order, and under processor sharing the clock at which a job
    leaves. `totals` gets the number of jobs that left and their time in system.
    """
    n = len(level)
    now = totals[2]
    to_come = now + np.random.exponential(1.0 / rate)
    while arrivals > 0:
        server = heap[0]
        if key[server] < to_come:
            now = key[server]
            level[server] -= 1
            here = level[server]
            # The job that leaves is the last one under PS, and the first one under FCFS.
            gone = here if ps else 0
            totals[0] += 1.0
            totals[1] += now - arrived[server, gone]
            if ps:
                clock[server] = tag[server, here]
                since[server] = now
            else:
                for i in range(here):
                    tag[server, i] = tag[server, i + 1]
                    arrived[server, i] = arrived[server, i + 1]
        else:
            now = to_come
            to_come = now + np.random.exponential(1.0 / rate)
            arrivals -= 1
            server = np.random.randint(n)
            other = np.random.randint(n - 1)
            other += other >= server
            if level[other] < level[server]:
                server = other
            here = level[server]
            size = np.random.exponential(1.0)
            if ps:
                clock[server] = clock[server] + (now - since[server]) / here if here else 0.0
                since[server] = now
                i = here
                while i > 0 and tag[server, i - 1] < clock[server] + size:
                    tag[server, i] = tag[server, i - 1]
                    arrived[server, i] = arrived[server, i - 1]
                    i -= 1
                tag[server, i] = clock[server] + size
                arrived[server, i] = now
            else:
                tag[server, here] = (tag[server, here - 1] if here else now) + size
                arrived[server, here] = now
            level[server] += 1
        here = level[server]
        if here == 0:
            key[server] = np.inf
        elif ps:
            key[server] = now + (tag[server, here - 1] - clock[server]) * here
        else:
            key[server] = tag[server, 0]
        _sift(heap, place, key, place[server], n)
    totals[2] = now


def heap(n_servers: int, ps: bool) -> Run:
    """Simulate jobs with a heap."""
    state = (
        np.zeros(n_servers, dtype=np.int64),
        np.zeros(n_servers),
        np.zeros(n_servers),
        np.zeros((n_servers, ROW)),
        np.zeros((n_servers, ROW)),
        np.full(n_servers, np.inf),
        np.arange(n_servers),
        np.arange(n_servers),
    )
    totals = np.zeros(3)
    # From empty: let the queues fill.
    for _ in range(max(1, 20 * n_servers // ARRIVALS)):
        heap_kernel(ps, LOAD * n_servers, *state, ARRIVALS, totals)

    def run() -> float:
        heap_kernel(ps, LOAD * n_servers, *state, ARRIVALS, totals)
        return float(ARRIVALS)

    return run


def package(model: Callable[[int], Callable[[], object]]) -> Run:
    """Simulate with another package."""

    def run() -> float:
        model(SLOW_ARRIVALS)()
        return float(SLOW_ARRIVALS)

    return run


@benchmark("servers", "what", costs=["ns/arrival", "over numbers of jobs"])
def followed(quick: bool) -> Iterator[Row]:
    """Following jobs, over the numbers of jobs alone.

    CPU time per arrival under SQ(2) at load 0.9, with all that is recorded of jobs; that of the
    numbers of jobs; and that of textbook kernels that keep the next departures in an indexed heap.
    In turns.
    """
    for n_servers in SIZES[: 2 if quick else None]:
        runs = {
            "numbers of jobs": numbers(n_servers),
            "FCFS": jobs(n_servers, "fcfs"),
            "PS": jobs(n_servers, "ps"),
            "PS, power law": jobs(n_servers, "ps", "power_law"),
            "PS, hyperexponential": jobs(n_servers, "ps", "hyperexponential", scv=9),
            "FCFS, heap": heap(n_servers, ps=False),
            "PS, heap": heap(n_servers, ps=True),
        }
        yield from compared(runs, n_servers, 3 if quick else ROUNDS)


@benchmark("servers", "what")
def packages(quick: bool) -> Iterator[Row]:
    """Following jobs in other packages, over following them here.

    CPU time per arrival under SQ(2) at load 0.9, in turns; packages start empty, and making their
    models counts.
    """
    work = Work(system(SLOW_SERVERS)[0], SQ2)
    yield from compared(
        {
            "FCFS": jobs(SLOW_SERVERS, "fcfs"),
            "FCFS, SimPy": package(lambda arrivals: simpy_model(work, arrivals)),
            "FCFS, Ciw": package(lambda arrivals: ciw_model(work, arrivals)),
        },
        SLOW_SERVERS,
        3,
    )
    yield from compared(
        {
            "PS": jobs(SLOW_SERVERS, "ps"),
            "PS, Ciw": package(lambda arrivals: ciw_model(work, arrivals, ps=True)),
        },
        SLOW_SERVERS,
        3,
    )


def compared(runs: dict[str, Run], n_servers: int, rounds: int) -> Iterator[Row]:
    """Yield the time per arrival of each, and over that of the first one."""
    spent = in_turns(runs, rounds, per_unit=True)
    first = next(iter(runs))
    for name, seconds in spent.items():
        yield {
            "servers": n_servers,
            "what": name,
            "ns/arrival": [1e9 * one for one in seconds],
            f"over {first}": ratios(seconds, spent[first]),
        }
