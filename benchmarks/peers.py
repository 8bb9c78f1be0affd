"""How long other simulators take for the same precision."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import numpy as np

import manyserver as ms
from benchmarks.driver import NotHere, Row, benchmark, children_seconds
from benchmarks.models import (
    Work,
    ciw_model,
    compiled,
    cpp_batches,
    gillespy2_model,
    gillespy2_solver,
    simpy_model,
)
from manyserver.policies import Policy
from manyserver.statistics.estimates import batch_ratio

PRECISION = 1e-3
SQ2: tuple[list[ms.Pool], Policy] = ([ms.Pool(1, 1)], ms.policy("sq", d=2))
NEAR = [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")]
FAR = [ms.Pool("1/2", "1/5"), ms.Pool("1/2", "9/5")]
CASES = [
    *(("SQ(2)", *SQ2, n, load) for n in (10, 100, 1000, 10_000) for load in (0.7, 0.9, 0.99)),
    *(
        (name, pools, policy, n, 0.9)
        for name, pools, policy in (
            ("Scheme 1 (2,2), C = (2/3,4/3)", NEAR, ms.policy("scheme1", d=[2, 2])),
            ("Scheme 2 (2,2), C = (1/5,9/5)", FAR, ms.policy("scheme2", d=[2, 2])),
        )
        for n in (100, 10_000)
    ),
]
QUICK = [CASES[1], CASES[4], CASES[-4]]
BATCHES = 60
LONGEST = 600
"""Relaxation times of the mean field that the C++ simulation measures, at least."""
EVENTS = 1e8
"""Events that it measures, at least: a thousand relaxation times of 10 servers at load 0.99."""


@benchmark("policy", "servers", "load", costs=["manyserver, s"])
def precision(quick: bool) -> Iterator[Row]:
    """CPU seconds to a half-width of 0.1 % of the mean time in system.

    At 95 %, exponential sizes, with warm-up and without compilation, on one core. `manyserver` is
    `simulate(system, policy, precision=1e-3)`, limit and all. The others average over time, and
    have no control variates. *Extrapolated*: the textbook in C++ (`benchmarks/textbook.cpp`) ran
    for 60 batches of at least ten relaxation times, which tell how many arrivals it takes, up to a
    factor of 1.5; its time is that of the run times the squared ratio of the half-widths. The other
    packages simulate the same process, and need as many arrivals; their time is that of an arrival,
    from runs of a second or more from the empty system. GillesPy2 runs its solver in C++ on the
    numbers of servers with at least so many jobs, cut off one level above the highest that the C++
    simulation saw.
    """
    if shutil.which("g++") is None:
        raise NotHere("there is no g++ to compile the textbook and GillesPy2")
    least = 0.1 if quick else 1.0
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(Path(folder))
        for name, pools, policy, n_servers, load in QUICK if quick else CASES:
            work = Work(ms.System(load, pools, n_servers=n_servers), policy)
            ours, met = own_seconds(work, 1 if quick else 7)
            cpp, arrivals, highest = cpp_seconds(program, work, EVENTS / 10 if quick else EVENTS)
            solver = gillespy2_solver(work, highest + 1)
            each = {
                "SimPy": python_cost(simpy_model, name, n_servers, least),
                "Ciw": python_cost(ciw_model, name, n_servers, least),
                "GillesPy2": arrival_seconds(partial(gillespy2_model, solver, work), least),
            }
            yield {
                "policy": name,
                "servers": n_servers,
                "load": load,
                "manyserver, s": ours,
                "C++, s": cpp,
                **{f"{peer}, s": seconds * arrivals for peer, seconds in each.items()},
                "C++ over manyserver": cpp / float(np.median(ours)),
                "arrivals in C++": float(arrivals),
                "extrapolated": "all" if not met else "all others",
            }


def own_seconds(work: Work, rounds: int) -> tuple[list[float], bool]:
    """Return the CPU times of the package, and whether it got so far with its default of events."""
    run = partial(ms.simulate, work.system, work.policy, threads=1)
    warmed(work.policy, len(work.system.counts))
    spent: list[float] = []
    while len(spent) < rounds and sum(spent) < 5:
        began = time.process_time()
        result = run(precision=PRECISION)
        reached = float(result.sojourn_mean_half_width / result.sojourn_mean)
        more = 1.0 if result.precision_met else (reached / PRECISION) ** 2
        spent.append(more * (time.process_time() - began))
    return spent, bool(result.precision_met)


@cache
def warmed(policy: Policy, n_pools: int) -> None:
    """Compile."""
    pools = {1: SQ2[0], 2: NEAR}[n_pools]
    for n_servers in (10, 10_000):
        ms.simulate(ms.System(0.5, pools, n_servers=n_servers), policy, precision=0.01, threads=1)


def cpp_seconds(program: Path, work: Work, least: float) -> tuple[float, float, int]:
    """Return the CPU time in C++, the arrivals that are measured, and the highest level."""
    relaxation = ms.relaxation_time(work.system, work.policy)
    events = max(least, LONGEST * relaxation * 2 * work.arrival_rate)
    warm, spent, highest, batches = cpp_batches(program, work, events / 10, events, BATCHES)
    estimate = batch_ratio(batches[:, 0], batches[:, 1])
    more = float(estimate.half_width / estimate.value / PRECISION) ** 2
    return warm + more * spent, more * batches[:, 1].sum(), highest


@cache
def python_cost(
    model: Callable[[Work, int], Callable[[], object]], name: str, n_servers: int, least: float
) -> float:
    """Return the CPU time of an arrival in Python, which hardly depends on the load."""
    pools, policy = next(case[1:3] for case in CASES if case[0] == name)
    return arrival_seconds(
        partial(model, Work(ms.System(0.9, pools, n_servers=n_servers), policy)), least
    )


def arrival_seconds(model: Callable[[int], Callable[[], object]], least: float) -> float:
    """Return the CPU time of an arrival, from a run of at least so many seconds."""
    arrivals, spent = 25, 0.0
    while spent < least:
        arrivals *= 4
        run = model(arrivals)
        began = time.process_time() + children_seconds()
        run()
        spent = time.process_time() + children_seconds() - began
    return spent / arrivals
