"""Measure how often 95 % intervals cover the truth.

Run ``uv run python verification/coverage``. Every case is simulated two thousand times, each
time as short as an interval may rest on, which is where intervals are worst, and in three cases
until a precision is met: one that about half of the shortest runs meet, and others that take many
more replications. Where jobs are followed, their times are looked at. The truth comes from the
exact Markov chain or a closed form, such as that of Pollaczek and Khinchine for random routing;
where neither can be had, from one run of `REFERENCE_LENGTH` times that length, whose own error is
a tenth of that of an interval, or less.

A case passes if its coverage is consistent, within two standard errors, with 94 to 96 % for means
and 93 to 97 % for all else, and if the bias is consistent with at most `LARGEST_BIAS` standard
errors of one run.
"""

import argparse
import itertools
import math
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import xarray as xr

import manyserver as ms
from manyserver.policies import Policy
from manyserver.sizes import SizeLaw

LOOSE = 0.9
"""A precision that the shortest run meets."""
REFERENCE_LENGTH = 250
"""Length of a reference, in runs."""
WIDEST = dict.fromkeys(["jobs_per_server", "sojourn_mean", "waiting_mean"], 0.01)
"""By how much coverage may differ from 0.95, for means; `WIDEST_OTHER` for all else."""
WIDEST_OTHER = 0.02
LARGEST_BIAS = 0.2
NAMES = (
    "jobs_per_server",
    "waiting_probability",
    "blocking_probability",
    "queue_tail",
    "joining_rate",
)
NAMES_OF_JOBS = (
    "sojourn_mean",
    "waiting_mean",
    "sojourn_quantile 0.5",
    "sojourn_quantile 0.9",
    "sojourn_quantile 0.99",
    "sojourn_quantile 0.999",
    "waiting_quantile 0.99",
)
"""Outputs that are looked at where jobs are followed; under processor sharing nobody waits."""
LEVEL = 2
"""Level of the tail that is looked at; the joining rate is that of one level below."""


@dataclass(frozen=True)
class Case:
    """A system and a policy, and where the truth comes from."""

    title: str
    load: float
    n_servers: int
    policy: Policy
    pools: tuple[ms.Pool, ...] = (ms.Pool(1, 1),)
    truth: str = "exact"
    precision: float = LOOSE
    sizes: SizeLaw | None = None
    discipline: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Outputs that are looked at."""
        if self.sizes is None:
            return NAMES
        waits = self.discipline == "fcfs"
        return tuple(name for name in NAMES_OF_JOBS if waits or not name.startswith("waiting"))

    @property
    def system(self) -> ms.System:
        """The system; its capacity is one."""
        return ms.System(self.load, self.pools, n_servers=self.n_servers)


SQ2 = ms.policy("sq", d=2)
RANDOM = ms.policy("random", probabilities=[1.0])
LOADS = (0.5, 0.9, 0.97)
TWO_POOLS = (ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3"))
SCVS, DISCIPLINES = (4, 39), ("fcfs", "ps")
EXPONENTIAL = ms.size_law("exponential")
MEASURED = ms.size_law(
    "empirical", values=np.random.default_rng(5).lognormal(sigma=1.27, size=3000), mean=1
)
"""Of a squared coefficient of variation of about 4."""


def hyper(scv: float) -> SizeLaw:
    """Return hyperexponential sizes."""
    return ms.size_law("hyperexponential", scv=scv)


SHORT = (ms.Pool(1, 1, buffer=3),)
CASES = [
    *(Case("SQ(2)", load, 2, SQ2) for load in LOADS),
    *(Case("SQ(2)", load, 3, SQ2) for load in LOADS[:2]),
    Case("SQ(2)", LOADS[0], 10, SQ2),
    Case("SQ(2)", LOADS[2], 3, SQ2, truth="long run"),
    *(Case("SQ(2)", load, 10, SQ2, truth="long run") for load in LOADS[1:]),
    *(Case("SQ(2)", load, n, SQ2, truth="long run") for n in (100, 1000) for load in LOADS),
    *(Case("Scheme 1 (1,1)", load, 2, ms.policy("scheme1", d=[1, 1]), TWO_POOLS) for load in LOADS),
    Case("Scheme 2 (1,2)", 0.7, 4, ms.policy("scheme2", d=[1, 2]), TWO_POOLS),
    *(
        Case(f"{title} (2,2)", 0.9, n, ms.policy(name, d=[2, 2]), TWO_POOLS, truth="long run")
        for title, name in (("Scheme 1", "scheme1"), ("Scheme 2", "scheme2"))
        for n in (6, 100)
    ),
    Case("SQ(2), buffer 3", 0.9, 6, SQ2, SHORT),
    Case("JSQ", 0.9, 3, ms.policy("jsq")),
    Case("JIQ", 0.9, 3, ms.policy("jiq")),
    *(Case(name.upper(), 0.9, 100, ms.policy(name), truth="long run") for name in ("jsq", "jiq")),
    Case("PULL, 2 routers", 0.8, 10, ms.policy("pull", routers=2), truth="long run"),
    Case("SQ(2), +-0.0003", 0.9, 2, SQ2, precision=0.0003),
    Case("SQ(2), +-0.0001", 0.9, 2, SQ2, precision=0.0001),
    Case("SQ(2), +-0.00002", 0.9, 1000, SQ2, truth="long run", precision=2e-5),
    Case("random", 0.5, 100, RANDOM, truth="M/M/1"),
    *(Case("random", 0.8, n, RANDOM, truth="M/M/1") for n in (10, 50)),
    *(
        Case(f"random {scv}", 0.8, 10, RANDOM, truth=truth, sizes=law, discipline=discipline)
        for scv, law, truth in ((1, EXPONENTIAL, "M/M/1"), *((v, hyper(v), "M/G/1") for v in SCVS))
        for discipline in DISCIPLINES
    ),
    *(
        Case(f"SQ(2) {v}", 0.9, 10, SQ2, truth="long run", sizes=hyper(v), discipline=discipline)
        for v in SCVS
        for discipline in DISCIPLINES
    ),
    *(
        Case("SQ(2) measured", 0.9, 100, SQ2, truth="long run", sizes=MEASURED, discipline=name)
        for name in DISCIPLINES
    ),
]


def picked(result: xr.Dataset, names: Sequence[str]) -> np.ndarray:
    """Return value and half-width of the outputs looked at, shape (output, 2)."""
    return np.array([[_one(result, name, more) for more in ("", "_half_width")] for name in names])


def _one(result: xr.Dataset, output: str, more: str) -> float:
    name, _, part = output.partition(" ")
    if name + more not in result:
        return 0.0
    value = result[name + more]
    if part:
        return float(value.sel(quantile=float(part)))
    level = LEVEL - name.startswith("joining")
    return float(value[0, level] if "level" in value.dims else value)


def simulated(case: Case, seed: int, length: float | None = None) -> tuple[np.ndarray, bool, float]:
    """Simulate; return the outputs, whether the interval is called reliable, and the time."""
    result = ms.simulate(
        case.system,
        case.policy,
        sizes=case.sizes,
        discipline=case.discipline,
        seed=(2026, seed),
        threads=1,
        max_events=1e13,
        precision=case.precision if length is None else None,
        horizon=length,
    )
    return picked(result, case.names), bool(result.interval_reliable), float(result.simulated_time)


def truth(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Return the true values, and the standard errors of these."""
    if case.sizes is not None and case.truth != "long run":
        values = np.array([[_of_one_server(case, name), 0.0] for name in case.names])
        if np.isnan(values).any():
            values = np.where(np.isnan(values[:, :1]), _long_run(case), values)
    elif case.truth == "exact":
        values = picked(ms.exact(case.system, case.policy), case.names)
        values[:, 1] = 0.0
    elif case.truth == "M/M/1":
        rho = case.load
        values = np.array([[rho / (1 - rho), 0], [rho, 0], [0, 0], [rho**LEVEL, 0], [rho, 0]])
    else:
        values = _long_run(case)
    return values[:, 0], values[:, 1] / 2


def _long_run(case: Case) -> np.ndarray:
    """Return values and half-widths of one long run, shape (output, 2)."""
    _, _, length = simulated(case, 0)
    return simulated(case, 1, REFERENCE_LENGTH * length / 8)[0]


def _of_one_server(case: Case, name: str) -> float:
    """Return what is known of M/G/1, and the quantiles of M/M/1."""
    if "quantile" in name:
        if case.truth == "M/G/1":
            return math.nan
        law = ms.sojourn_law(case.system, case.policy, discipline=case.discipline)
        return _one(law, name, "")
    rho, scv = case.load, 1.0 if case.sizes is None else case.sizes.scv
    wait = rho * (1 + (scv if case.discipline == "fcfs" else 1.0)) / (2 * (1 - rho))
    return wait + (name == "sojourn_mean")


def covered(case: Case, replications: int, workers: ProcessPoolExecutor) -> bool:
    """Print one line for each output of a case, and return whether all pass."""
    reference = workers.submit(truth, case)
    runs = list(workers.map(partial(simulated, case), range(2, replications + 2), chunksize=5))
    values = np.array([run[0] for run in runs])
    true, error = reference.result()
    passed = True
    for output, name in enumerate(case.names):
        value, half_width = values[:, output].T
        inside = np.abs(value - true[output]) <= half_width + 1e-12
        coverage = float(inside.mean())
        binomial = math.sqrt(0.95 * 0.05 / replications)
        good = abs(coverage - 0.95) <= WIDEST.get(name, WIDEST_OTHER) + 2 * binomial
        # In standard errors of one run.
        z = 1.96 * (value - true[output]) / np.maximum(half_width, 1e-300)
        its_error = 1.96 * error[output] / max(float(np.median(half_width)), 1e-300)
        good &= abs(z.mean()) <= LARGEST_BIAS + 2 * math.hypot(
            z.std() / replications**0.5, its_error
        )
        # An interval of width zero about the truth covers always, as it should.
        if (half_width <= 1e-12).all() and inside.all():
            continue
        passed &= bool(good)
        print(
            f"{case.title:16} {case.n_servers:4} {case.load:5.2f} {name:20} {case.truth:9} "
            f"{coverage:6.3f} +- {binomial:.3f} {np.mean([run[1] for run in runs]):6.2f} "
            f"{np.median(half_width) / true[output]:9.1e} {error[output] / true[output]:9.1e} "
            f"{z.mean():7.3f} {z.std():6.3f} "
            f"{'pass' if good else 'FAIL'}",
            flush=True,
        )
    return passed


def main() -> None:
    """Print the table; the exit status is 1 if a case fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--replications", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--cases", type=int, nargs="*", help="numbers, from 0; all by default")
    options = parser.parse_args()
    chosen = range(len(CASES)) if options.cases is None else options.cases
    print(
        f"{'policy':16} {'N':>4} {'load':>5} {'output':20} {'truth':9} {'coverage':>15} "
        f"{'reliable':>6} {'half-w.':>8} {'truth err':>9} {'mean z':>7} {'s.d. z':>6}"
    )
    with ProcessPoolExecutor(options.processes) as workers:
        passes = [covered(CASES[number], options.replications, workers) for number in chosen]
    sys.exit(0 if all(itertools.chain(passes)) else 1)


if __name__ == "__main__":
    main()
