"""The points of a study of dispatching policies: every policy on every system at every rate."""

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache
from itertools import product

from manyserver import methods, policies
from manyserver.model import Pool, System, UnstableSystem, exact_capacity
from manyserver.policies import Policy
from manyserver.study.layout import MOST_POINTS
from manyserver.study.models.dispatching.config import Config, PolicyConfig
from manyserver.study.models.dispatching.jobs import Jobs, read_jobs
from manyserver.study.models.dispatching.subject import Dispatching
from manyserver.study.points import Point, told_options
from manyserver.validation import Mistakes, suggestion

__all__ = ["UNSTABLE", "Sweep"]

MOST_MEMORY = 16e9
"""Bytes that a point may take."""
UNSTABLE = "unstable"
"""Status of a point at which the policy cannot serve the system."""


class Sweep:
    """Builds the systems, policies and points of a study and tells what is wrong with them."""

    def __init__(self, config: Config, mistakes: Mistakes):
        self.config = config
        self.mistakes = mistakes

    def check_unit(self) -> None:
        """Tell if a unit is cut along an axis that the study does not have."""
        other = {"load": "arrival_rate", "arrival_rate": "load"}[self.config.sweep.rate_name]
        if other in self.config.unit:
            self.mistakes.add("unit", f"{other!r} is not an axis of this study's sweep")
        if "jobs" in self.config.unit and self.config.jobs is None:
            self.mistakes.add("unit", "'jobs' is not an axis of this study; it has no key jobs")

    def jobs(self) -> dict[str, Jobs]:
        """Return the job sizes and disciplines by label; none if the study names none."""
        found: dict[str, Jobs] = {}
        folder = self.mistakes.document.path.parent
        for label, item in (self.config.jobs or {}).items():
            try:
                found[label] = read_jobs(item, folder)
            except (ValueError, TypeError, OSError) as error:
                self.mistakes.add(f"jobs.{label}", error)
        if self.config.jobs is not None:
            self._check_methods()
        return found

    def _check_methods(self) -> None:
        """Tell which methods cannot follow jobs."""
        known = methods.names(self.config.model)
        follow = [name for name in known if methods.load(name).takes_sizes]
        for name, options in self.config.methods_used.items():
            if name not in follow:
                told = f"does not follow jobs; with the key jobs, must be {' or '.join(follow)}"
                self.mistakes.add(f"methods.{name}", told)
            elif getattr(options, "moments", False):
                self.mistakes.add(
                    f"methods.{name}.moments", "True: must be false with the key jobs"
                )

    def policies(self) -> dict[str, Policy]:
        """Return the policies by label."""
        found: dict[str, Policy] = {}
        for i, item in enumerate(self.config.policies):
            key = f"policies[{i}]"
            try:
                policy = policies.policy(item.name, **item.parameters)
            except (ValueError, TypeError) as error:
                self.mistakes.add(key, error)
                continue
            label = item.label or _label(policy, item)
            if label in found:
                self.mistakes.add(f"{key}.label", f"{label!r} occurs twice; must be unique")
            found[label] = policy
            for system in item.systems or ():
                if system not in self.config.systems:
                    told = suggestion(system, self.config.systems)
                    self.mistakes.add(f"{key}.systems", f"there is no system {system!r}; {told}")
        return found

    def served(self, policy: int, system: str) -> bool:
        """Whether a policy is computed for a system."""
        only = self.config.policies[policy].systems
        return only is None or system in only

    def pools(self) -> dict[str, tuple[Pool, ...]]:
        """Return the pools of every system by label."""
        found: dict[str, tuple[Pool, ...]] = {}
        for label, item in self.config.systems.items():
            pools: list[Pool] = []
            for i, pool in enumerate(item.pools):
                try:
                    pools.append(Pool(pool.fraction, pool.speed, pool.buffer))
                except ValueError as error:
                    self.mistakes.add(f"systems.{label}.pools[{i}]", error)
            if len(pools) < len(item.pools):
                continue
            try:
                found[label] = System(1e-9, pools).pools
            except ValueError as error:
                self.mistakes.add(f"systems.{label}", error)
        return found

    def check_servers(self, pools: dict[str, tuple[Pool, ...]]) -> None:
        """Tell which numbers of servers do not split into whole pools."""
        for label, these in pools.items():
            for n_servers in self.config.sweep.n_servers:
                try:
                    System(1e-9, these, n_servers)
                except ValueError as error:
                    self.mistakes.add("sweep.n_servers", f"{error} (system {label!r})")

    def check_size(self) -> None:
        """Tell if there are too many points."""
        config = self.config
        axes = (config.systems, config.policies, config.jobs or " ", config.methods_used)
        count = math.prod(map(len, (*axes, config.sweep.n_servers, config.sweep.rates)))
        if count > MOST_POINTS:
            self.mistakes.add("sweep", f"makes {count} points; must be at most {MOST_POINTS}")

    def check_memory(
        self,
        pools: dict[str, tuple[Pool, ...]],
        chosen: dict[str, Policy],
        jobs: Mapping[str, Jobs],
    ) -> None:
        """Tell for which numbers of servers a method needs too much memory."""
        policy, followed = next(iter(chosen.values())), next(iter(jobs.values()), None)
        for label, these in pools.items():
            for n in filter(None, self.config.sweep.n_servers):
                try:
                    system = System(1e-9, these, n)
                except ValueError:
                    continue  # told elsewhere
                for method in self.config.methods_used:
                    problem = Dispatching(system, policy, followed).problem
                    needed = methods.load(method).memory(problem)
                    if needed > MOST_MEMORY:
                        self.mistakes.add(
                            "sweep.n_servers",
                            f"n_servers = {n}: the method {method} needs {needed / 1e9:.3g} GB of "
                            f"memory; must be at most {int(n * MOST_MEMORY / needed)} "
                            f"(system {label!r})",
                        )

    def check_rates(self, pools: dict[str, tuple[Pool, ...]]) -> None:
        """Tell which rates are too high for a system."""
        sweep = self.config.sweep
        for label, these in pools.items():
            for rate in sweep.rates:
                try:
                    System(_arrival_rate(sweep.rate_name, rate, these), these)
                except UnstableSystem as error:
                    told = error if sweep.rate_name == "arrival_rate" else "must be below 1"
                    shown = "" if sweep.rate_name == "arrival_rate" else f"load = {float(rate)}: "
                    self.mistakes.add(
                        f"sweep.{sweep.rate_name}", f"{shown}{told} (system {label!r})"
                    )

    def points(
        self,
        pools: dict[str, tuple[Pool, ...]],
        chosen: dict[str, Policy],
        jobs: Mapping[str, Jobs],
    ) -> Iterator[Point]:
        """Yield every point, in the order method, system, policy, jobs, number of servers, rate."""
        sweep = self.config.sweep
        systems = {
            (label, n_servers, rate): System(
                _arrival_rate(sweep.rate_name, rate, these), these, n_servers
            )
            for label, these in pools.items()
            for n_servers in sweep.n_servers
            for rate in sweep.rates
        }
        stable = self._stability(systems, chosen)
        followed: list[tuple[dict[str, str], Jobs | None]] = [
            ({"jobs": label}, these) for label, these in jobs.items()
        ] or [({}, None)]
        for name, options in self.config.methods_used.items():
            method = methods.load(name)
            told = told_options(options)
            places = product(
                pools, enumerate(chosen.items()), followed, sweep.n_servers, sweep.rates
            )
            for system_label, (i, (policy_label, policy)), (of_jobs, these), n, rate in places:
                system = systems[system_label, n, rate]
                subject = Dispatching(system, policy, these)
                if not (self.served(i, system_label) and method.applies(subject.problem)):
                    continue
                try:
                    method.check(subject.problem, options)
                except ValueError as error:
                    self.mistakes.add(f"methods.{name}", error)
                yield Point(
                    name,
                    subject,
                    labels={
                        "system": system_label,
                        "policy": policy_label,
                        **of_jobs,
                        "n_servers": n,
                        sweep.rate_name: float(rate),
                    },
                    options=told,
                    study_seed=self.config.seed,
                    left_out=(
                        method.skip_reason(subject.problem, options)
                        if stable[i, system_label, n, rate]
                        else UNSTABLE
                    ),
                )

    def _stability(
        self,
        systems: dict[tuple[str, int | None, Fraction], System],
        chosen: dict[str, Policy],
    ) -> dict[tuple[int, str, int | None, Fraction], bool]:
        stable = {}
        for i, policy in enumerate(chosen.values()):
            check = cache(policy.check)
            for place, system in systems.items():
                if not self.served(i, place[0]):
                    continue
                stable[i, *place] = True
                try:
                    check(system)
                    # Methods for finite systems start from the limit, or compare with it.
                    check(System(system.arrival_rate, system.pools))
                except UnstableSystem as error:
                    stable[i, *place] = False
                    if self.config.unstable == "error":
                        self._unstable(i, place[0], error)
                except ValueError as error:
                    self.mistakes.add(f"policies[{i}]", f"{error} (system {place[0]!r})")
        return stable

    def _unstable(self, i: int, system: str, error: UnstableSystem) -> None:
        advice = "lower the rates, or say 'unstable: skip' to leave such points empty"
        prefix = f": policies[{i}]: "
        if not any(prefix in line for line in self.mistakes.lines):
            self.mistakes.add(f"policies[{i}]", f"{error} (system {system!r}); {advice}")


def _arrival_rate(rate_name: str, rate: Fraction, pools: tuple[Pool, ...]) -> float:
    if rate_name == "arrival_rate":
        return float(rate)
    return float(rate * exact_capacity(pools))


def _label(policy: Policy, item: PolicyConfig) -> str:
    def text(value: object) -> str:
        if isinstance(value, (list, tuple)):
            return f"({','.join(str(part) for part in value)})"
        return str(value).lower() if isinstance(value, bool) else str(value)

    told = [f"{name}={text(value)}" for name, value in item.parameters.items()]
    return " ".join([policy.name, *told])
