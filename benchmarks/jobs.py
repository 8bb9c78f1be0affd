"""Speed of the kernel that follows jobs: against that of the numbers of jobs, a heap, and others.

Run ``uv run --group benchmark python benchmarks/jobs.py``.
"""
# ruff: noqa: NPY002 -- the heap uses NumPy's global generator, the fastest one of numba's

import random
import statistics
import time
from collections.abc import Callable

import numpy as np
from numba import njit

import manyserver as ms
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


def jobs(n_servers: int, ps: bool, law: str = "exponential", **parameters: object) -> Run:
    """Simulate jobs, with pieces as short as they can be in a run."""
    one, start = system(n_servers)
    replica = JobReplica(one, SQ2, ms.sizes(law, **parameters), ps, start, (1,))
    time_each = ARRIVALS / LOAD / n_servers
    pieces = max(1, round(time_each))
    records = make_records(1, 1e9, 1, ps, replica.bounds)

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


# Packages for queues


def simpy_run(n_servers: int) -> Run:
    """Simulate first come, first served with SimPy: a resource for each server."""
    import simpy

    def job(environment: simpy.Environment, server: simpy.Resource, sojourns: list[float]):  # type: ignore[no-untyped-def]
        arrived = environment.now
        with server.request() as request:
            yield request
            yield environment.timeout(random.expovariate(1.0))
        sojourns.append(environment.now - arrived)

    def source(
        environment: simpy.Environment, servers: list[simpy.Resource], sojourns: list[float]
    ):  # type: ignore[no-untyped-def]
        for _ in range(SLOW_ARRIVALS):
            yield environment.timeout(random.expovariate(LOAD * n_servers))
            looked = random.sample(servers, 2)
            server = min(looked, key=lambda s: s.count + len(s.queue))
            environment.process(job(environment, server, sojourns))

    def run() -> float:
        environment = simpy.Environment()
        servers = [simpy.Resource(environment) for _ in range(n_servers)]
        environment.process(source(environment, servers, []))
        environment.run()
        return float(SLOW_ARRIVALS)

    return run


def ciw_run(n_servers: int, ps: bool) -> Run:
    """Simulate with Ciw: a node for each server, and one where jobs arrive and take no time."""
    import ciw

    class TwoChoices(ciw.routing.NodeRouting):  # type: ignore[misc]
        def next_node(self, ind: object) -> object:
            nodes = self.simulation.nodes
            return min(random.sample(nodes[2:-1], 2), key=lambda node: node.number_of_individuals)

    leave = [ciw.routing.Leave() for _ in range(n_servers)]
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(LOAD * n_servers)] + [None] * n_servers,
        service_distributions=[ciw.dists.Deterministic(0.0)]
        + [ciw.dists.Exponential(1.0)] * n_servers,
        number_of_servers=[float("inf")] + [float("inf") if ps else 1] * n_servers,
        routing=ciw.routing.NetworkRouting([TwoChoices(), *leave]),
        ps_thresholds=[1] * (n_servers + 1),
    )
    classes = [ciw.Node] + [ciw.PSNode if ps else ciw.Node] * n_servers

    def run() -> float:
        simulation = ciw.Simulation(network, node_class=classes)
        simulation.simulate_until_max_customers(SLOW_ARRIVALS, method="Arrive")
        return float(SLOW_ARRIVALS)

    return run


def nanoseconds(run: Run) -> float:
    """Return the CPU time per arrival."""
    start = time.thread_time()
    arrivals = run()
    return 1e9 * (time.thread_time() - start) / arrivals


def compared(runs: dict[str, Run], rounds: int) -> dict[str, tuple[float, float]]:
    """Run all in turns; return the median time per arrival, and that over the first one's."""
    for run in runs.values():
        run()
    turns = [{name: nanoseconds(run) for name, run in runs.items()} for _ in range(rounds)]
    first = next(iter(runs))
    return {
        name: (
            statistics.median(turn[name] for turn in turns),
            statistics.median(turn[name] / turn[first] for turn in turns),
        )
        for name in runs
    }


def main() -> None:
    """Print the tables."""
    print("SQ(2), load 0.9: CPU time per arrival in ns, and over that of the numbers of jobs")
    costs: dict[str, dict[int, float]] = {}
    for n_servers in SIZES:
        runs = {
            "numbers of jobs": numbers(n_servers),
            "FCFS": jobs(n_servers, ps=False),
            "PS": jobs(n_servers, ps=True),
            "PS, power law": jobs(n_servers, True, "power_law"),
            "PS, hyperexponential": jobs(n_servers, True, "hyperexponential", scv=9),
            "FCFS, heap": heap(n_servers, ps=False),
            "PS, heap": heap(n_servers, ps=True),
        }
        print(f"\n{n_servers} servers")
        for name, (cost, ratio) in compared(runs, ROUNDS).items():
            costs.setdefault(name, {})[n_servers] = cost
            print(f"  {name:22} {cost:8.1f} {ratio:7.2f}", flush=True)
    print(f"\nCost at {SIZES[-1]} over that at {SIZES[0]} servers")
    for name, by_size in costs.items():
        print(f"  {name:22} {by_size[SIZES[-1]] / by_size[SIZES[0]]:7.2f}")
    print(f"\n{SLOW_SERVERS} servers: times slower than following jobs here")
    for ps, packages in {False: ("SimPy", "Ciw"), True: ("Ciw",)}.items():
        name = "PS" if ps else "FCFS"
        slow = {
            "SimPy": lambda: simpy_run(SLOW_SERVERS),
            "Ciw": lambda p=ps: ciw_run(SLOW_SERVERS, p),
        }
        runs = {name: jobs(SLOW_SERVERS, ps)} | {p: slow[p]() for p in packages}
        for package, (cost, ratio) in list(compared(runs, 3).items())[1:]:
            print(
                f"  {name + ', ' + package:22} {cost:8.0f} ns per arrival {ratio:8.0f}", flush=True
            )


if __name__ == "__main__":
    main()
