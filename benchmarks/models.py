"""The same systems for other simulators: a model is made first, and then simulates.

All start empty. Policies look at `choices` servers of each pool and join the one of lowest rank.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import manyserver as ms
from manyserver.policies import Policy

__all__ = [
    "Work",
    "ciw_model",
    "compiled",
    "cpp_batches",
    "gillespy2_model",
    "gillespy2_solver",
    "simpy_model",
]

LEVELS = 2000
"""More than any server ever holds."""


@dataclass(frozen=True)
class Work:
    """A system and a policy in plain numbers."""

    system: ms.System
    policy: Policy

    @property
    def arrival_rate(self) -> float:
        """Of the whole system."""
        return float(self.system.arrival_rate) * sum(self.system.counts)

    @property
    def pools(self) -> list[tuple[int, float, int, list[int]]]:
        """Servers, speed, how many an arrival looks at, and ranks by level, of each pool."""
        choices = np.ravel(self.policy.parameters["d"]).tolist()
        ranks = self.policy.rank_table(self.system, LEVELS).tolist()
        speeds = np.asarray(self.system.speeds, dtype=float).tolist()
        return list(zip(self.system.counts, speeds, choices, ranks, strict=True))


def compiled(folder: Path) -> Path:
    """Compile the textbook simulation in C++."""
    program, source = folder / "textbook", Path(__file__).with_name("textbook.cpp")
    command = ["g++", "-std=c++17", "-O3", "-march=native", source, "-o", program]
    subprocess.run(command, check=True)
    return program


def cpp_batches(
    program: Path, work: Work, warm_up: float, events: float, batches: int
) -> tuple[float, float, int, np.ndarray]:
    """Run the textbook simulation in C++.

    Returns
    -------
    float, float, int, numpy.ndarray, shape (batch, 2)
        CPU seconds of the warm-up and of the rest; the highest level; the time integral of the
        number of jobs and the number of arrivals.
    """
    text = f"{work.arrival_rate} {len(work.pools)} {LEVELS}\n"
    for servers, speed, choices, ranks in work.pools:
        text += f"{servers} {speed} {choices} {' '.join(map(str, ranks))}\n"
    command = [str(item) for item in (program, 1, warm_up, events, batches)]
    told = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    first, *lines = told.splitlines()
    warm, measured, highest = first.split()
    return (
        float(warm),
        float(measured),
        int(highest),
        np.array([line.split() for line in lines], float),
    )


def simpy_model(work: Work, arrivals: int) -> Callable[[], object]:
    """First come, first served, with SimPy: a resource for each server."""
    import simpy

    environment = simpy.Environment()
    sojourns: list[float] = []
    pools = [
        ([simpy.Resource(environment) for _ in range(servers)], speed, choices, ranks)
        for servers, speed, choices, ranks in work.pools
    ]
    rate = work.arrival_rate

    def job(server: simpy.Resource, speed: float) -> Any:
        arrived = environment.now
        with server.request() as request:
            yield request
            yield environment.timeout(random.expovariate(speed))
        sojourns.append(environment.now - arrived)

    def source() -> Any:
        for _ in range(arrivals):
            yield environment.timeout(random.expovariate(rate))
            looked = (
                (ranks[server.count + len(server.queue)], server, speed)
                for servers, speed, choices, ranks in pools
                for server in random.sample(servers, choices)
            )
            _, server, speed = min(looked, key=lambda one: one[0])
            environment.process(job(server, speed))

    environment.process(source())
    return environment.run


def ciw_model(work: Work, arrivals: int, ps: bool = False) -> Callable[[], object]:
    """First come, first served or processor sharing, with Ciw.

    A node for each server, and one where jobs arrive and take no time.
    """
    import ciw

    bounds = np.cumsum([1, *work.system.counts])
    pools = [
        (int(first), int(last), choices, ranks)
        for first, last, (_, _, choices, ranks) in zip(bounds, bounds[1:], work.pools, strict=False)
    ]

    class Look(ciw.routing.NodeRouting):  # type: ignore[misc]
        def next_node(self, ind: object) -> object:
            servers = self.simulation.transitive_nodes
            looked = (
                (ranks[node.number_of_individuals], node)
                for first, last, choices, ranks in pools
                for node in (servers[at] for at in random.sample(range(first, last), choices))
            )
            return min(looked, key=lambda one: one[0])[1]

    n_servers = sum(work.system.counts)
    laws = [
        ciw.dists.Exponential(speed) for servers, speed, *_ in work.pools for _ in range(servers)
    ]
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(work.arrival_rate)] + [None] * n_servers,
        service_distributions=[ciw.dists.Deterministic(0.0), *laws],
        number_of_servers=[float("inf")] + [float("inf") if ps else 1] * n_servers,
        routing=ciw.routing.NetworkRouting([Look(), *(ciw.routing.Leave() for _ in laws)]),
        ps_thresholds=[1] * (n_servers + 1),
    )
    classes = [ciw.Node] + [ciw.PSNode if ps else ciw.Node] * n_servers
    simulation = ciw.Simulation(network, node_class=classes)
    return lambda: simulation.simulate_until_max_customers(arrivals, method="Arrive")


def gillespy2_solver(work: Work, levels: int) -> Any:
    """Return a solver of GillesPy2, compiled, for a system without room above a level.

    Mass action cannot say that the best of two is joined. So the species are the numbers of servers
    with at least so many jobs, and the propensities are written out.
    """
    import gillespy2

    model = gillespy2.Model("dispatching")
    tails = [[f"T{pool}x{level}" for level in range(levels + 2)] for pool in range(len(work.pools))]
    for names, (servers, *_) in zip(tails, work.pools, strict=True):
        for level, name in enumerate(names):
            model.add_species(
                gillespy2.Species(name, servers if level == 0 else 0, mode="discrete")
            )

    def all_above(rank: int) -> str:
        """Say with what probability all servers that are looked at have at least this rank."""
        factors = []
        for names, (servers, _, choices, ranks) in zip(tails, work.pools, strict=True):
            name = names[int(np.searchsorted(ranks[: levels + 1], rank))]
            factors += [f"({name}-{i})/{servers - i}.0" for i in range(choices)]
        return "*".join(factors)

    for pool, (names, (_, speed, _, ranks)) in enumerate(zip(tails, work.pools, strict=True)):
        for level in range(1, levels + 1):
            rank = ranks[level - 1]
            joins = f"{work.arrival_rate}*({all_above(rank)}-{all_above(rank + 1)})"
            leaves = f"{speed}*({names[level]}-{names[level + 1]})"
            for kind, before, after, rate in (
                ("joins", {}, {names[level]: 1}, joins),
                ("leaves", {names[level]: 1}, {}, leaves),
            ):
                name = f"{kind}{pool}x{level}"
                model.add_reaction(
                    gillespy2.Reaction(
                        name=name, reactants=before, products=after, propensity_function=rate
                    )
                )
    return gillespy2.SSACSolver(model)


def gillespy2_model(solver: Any, work: Work, arrivals: int) -> Callable[[], object]:
    """Simulate with GillesPy2, and keep the state at a thousand times."""
    solver.model.timespan(np.linspace(0.0, arrivals / work.arrival_rate, 1001))
    return partial(solver.run, seed=1)
