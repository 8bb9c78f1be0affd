"""The points of a study of dispatching policies: every policy on every system at every rate."""

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

from manyserver import methods, policies
from manyserver.methods import METHOD
from manyserver.model import Pool, System, UnstableSystem, exact_capacity
from manyserver.policies import Policy
from manyserver.study.config.formulas import as_floats
from manyserver.study.layout import MOST_POINTS, Gap
from manyserver.study.models.dispatching.config import Config, JobsConfig, PolicyConfig
from manyserver.study.models.dispatching.coordinates import is_taken
from manyserver.study.models.dispatching.jobs import Jobs, read_jobs
from manyserver.study.models.dispatching.spread import Axes, Place, Spread
from manyserver.study.models.dispatching.subject import Dispatching
from manyserver.study.points import Point, told_options
from manyserver.validation import Mistakes, suggestion

__all__ = ["IMPOSSIBLE", "UNSTABLE", "Sweep"]

MOST_MEMORY = 16e9
"""Bytes that a point may take."""
LIGHT = 1e-9
"""An arrival rate that every system can serve."""
UNSTABLE = "unstable"
"""Status of a point at which the policy cannot serve the system."""
IMPOSSIBLE = "impossible"
"""Status where axes of the study's own meet so that there is no such system, or no such policy."""

Pools = tuple[Pool, ...]


class Sweep:
    """Builds the systems, policies and points of a study and tells what is wrong with them."""

    def __init__(self, config: Config, mistakes: Mistakes):
        self.config = config
        self.mistakes = mistakes
        sweep = config.sweep
        given = {"n_servers": sweep.n_servers, sweep.rate_name: sweep.rates}
        self.axes = Axes(given, sweep.own)

    def check_axes(self) -> None:
        """Tell which axes of the study's own have a name that is taken, or stand for nothing."""
        config = self.config
        used = self.axes.used(
            [item.parameters for item in config.systems.values()],
            [item.parameters for item in config.policies],
            [item.sizes.parameters for item in (config.jobs or {}).values() if item.sizes],
        )
        for name, axis in config.sweep.own.items():
            key = f"sweep.{name}"
            if is_taken(name) or not name.isidentifier():
                told = "is a name of the cube's own" if is_taken(name) else "must be one word"
                self.mistakes.add(key, f"{told}; choose another name for this axis")
            elif name not in used:
                known = suggestion(name, ["arrival_rate", "load", "n_servers"])
                told = "is no key of sweep, and an axis that no system, policy or jobs use"
                self.mistakes.add(key, f"{told}; {known}")
            if axis.along is not None:
                self._check_along(key, axis.along, len(axis.values))

    def _check_along(self, key: str, along: str, count: int) -> None:
        if along not in self.axes.values:
            told = suggestion(along, self.axes.values)
            self.mistakes.add(f"{key}.along", f"there is no axis {along!r}; {told}")
        elif count != len(self.axes.values[along]):
            there = len(self.axes.values[along])
            self.mistakes.add(
                f"{key}.values", f"has {count} values; must have {there}, as {along} has"
            )

    def check_unit(self) -> None:
        """Tell if a unit is cut along an axis that the study does not have."""
        known = ["system", "policy", *(["jobs"] if self.config.jobs else []), *self.axes.values]
        for name in self.config.unit:
            if name not in known:
                told = f"{name!r} is not an axis of this study; {suggestion(name, known)}"
                self.mistakes.add("unit", told)

    def jobs(self) -> dict[str, Spread[Jobs]]:
        """Return the job sizes and disciplines by label; none if the study names none."""
        found: dict[str, Spread[Jobs]] = {}
        folder = self.mistakes.document.path.parent

        def made(value: dict[str, Any]) -> Jobs:
            return read_jobs(JobsConfig(**as_floats(value)), folder)

        for label, item in (self.config.jobs or {}).items():
            told = {**item.model_dump(), "sizes": item.sizes and item.sizes.model_dump()}
            spread = self.axes.spread(f"jobs.{label}", told, made, self.mistakes)
            if spread is not None:
                found[label] = spread
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

    def policies(self) -> dict[str, Spread[Policy]]:
        """Return the policies by label."""
        found: dict[str, Spread[Policy]] = {}
        for i, item in enumerate(self.config.policies):
            key = f"policies[{i}]"

            def made(parameters: dict[str, Any], name: str = item.name) -> Policy:
                return policies.policy(name, **as_floats(parameters))

            spread = self.axes.spread(key, item.parameters, made, self.mistakes)
            if spread is None:
                continue
            label = item.label or _label(item)
            if label in found:
                self.mistakes.add(f"{key}.label", f"{label!r} occurs twice; must be unique")
            found[label] = spread
            for system in item.systems or ():
                if system not in self.config.systems:
                    told = suggestion(system, self.config.systems)
                    self.mistakes.add(f"{key}.systems", f"there is no system {system!r}; {told}")
        return found

    def served(self, policy: int, system: str) -> bool:
        """Whether a policy is computed for a system."""
        only = self.config.policies[policy].systems
        return only is None or system in only

    def pools(self) -> dict[str, Spread[Pools]]:
        """Return the pools of every system by label."""
        found: dict[str, Spread[Pools]] = {}
        for label, item in self.config.systems.items():
            key = f"systems.{label}"
            told = item.parameters
            single = [
                self.axes.spread(f"{key}.pools[{i}]", pool, _pool, self.mistakes)
                for i, pool in enumerate(told["pools"])
            ]
            if None in single:
                continue
            spread = self.axes.spread(key, told, _pools, self.mistakes)
            if spread is not None:
                found[label] = spread
        return found

    def check_servers(self, pools: Mapping[str, Spread[Pools]]) -> None:
        """Tell which numbers of servers do not split into whole pools, whatever the axes are."""
        for label, these in pools.items():
            for n_servers in self.config.sweep.n_servers:
                errors = [_system(LIGHT, own, n_servers)[2] for own in these]
                if all(errors):
                    self.mistakes.add("sweep.n_servers", f"{errors[0]} (system {label!r})")

    def check_size(self) -> None:
        """Tell if there are too many points."""
        config = self.config
        axes = (config.systems, config.policies, config.jobs or " ", config.methods_used)
        count = math.prod(map(len, (*axes, *self.axes.values.values())))
        if count > MOST_POINTS:
            self.mistakes.add("sweep", f"makes {count} points; must be at most {MOST_POINTS}")

    def check_memory(
        self,
        pools: Mapping[str, Spread[Pools]],
        chosen: Mapping[str, Spread[Policy]],
        jobs: Mapping[str, Spread[Jobs]],
    ) -> None:
        """Tell for which numbers of servers a method needs too much memory."""
        policy = next(iter(next(iter(chosen.values()))))
        followed = next((next(iter(spread)) for spread in jobs.values()), None)
        for label, these in pools.items():
            for n in filter(None, self.config.sweep.n_servers):
                made = (_system(LIGHT, own, n)[0] for own in these)
                system = next(filter(None, made), None)
                if system is None:
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

    def check_rates(self, pools: Mapping[str, Spread[Pools]]) -> None:
        """Tell which rates are too high for a system."""
        sweep = self.config.sweep
        for label, these in pools.items():
            for rate, own in product(sweep.rates, these):
                try:
                    System(_arrival_rate(sweep.rate_name, rate, own), own)
                except UnstableSystem as error:
                    if these.dims and self.config.unstable == "skip":
                        continue
                    told = error if sweep.rate_name == "arrival_rate" else "must be below 1"
                    shown = "" if sweep.rate_name == "arrival_rate" else f"load = {float(rate)}: "
                    self.mistakes.add(
                        f"sweep.{sweep.rate_name}", f"{shown}{told} (system {label!r})"
                    )

    def points(
        self,
        pools: Mapping[str, Spread[Pools]],
        chosen: Mapping[str, Spread[Policy]],
        jobs: Mapping[str, Spread[Jobs]],
    ) -> Iterator[Point | Gap]:
        """Yield what is at every place, in the order of the cube: method, system, policy, ..."""
        followed: list[tuple[dict[str, str], Spread[Jobs] | None]] = [
            ({"jobs": label}, these) for label, these in jobs.items()
        ] or [({}, None)]
        for name, options in self.config.methods_used.items():
            method = methods.load(name)
            told = told_options(options)
            parts = product(pools.items(), enumerate(chosen.items()), followed)
            for (system_label, own), (i, (label, spread)), (of_jobs, these) in parts:
                if not self.served(i, system_label):
                    continue
                for place in self.axes.places(self.axes.values):
                    labels = {
                        "system": system_label,
                        "policy": label,
                        **of_jobs,
                        **self.axes.labels(place),
                    }
                    policy = spread.at(place)
                    system, status, reason = self._judged(i, system_label, own, spread, place)
                    if system is None:
                        yield Gap({METHOD: name, **labels}, status, reason)
                        continue
                    subject = Dispatching(
                        system, policy, None if these is None else these.at(place)
                    )
                    if not method.applies(subject.problem):
                        continue
                    try:
                        method.check(subject.problem, options)
                    except ValueError as error:
                        self.mistakes.add(f"methods.{name}", error)
                    yield Point(
                        name,
                        subject,
                        labels=labels,
                        options=told,
                        study_seed=self.config.seed,
                        left_out=status or method.skip_reason(subject.problem, options),
                    )

    def _judged(
        self, i: int, label: str, own: Spread[Pools], spread: Spread[Policy], place: Place
    ) -> tuple[System | None, str, str]:
        """Return the system at a place, or None; why there is no value, if so; and the reason."""
        n, rate = (self.axes.values[axis][place[axis]] for axis in self.axes.fixed)
        pools = own.at(place)
        arrival_rate = _arrival_rate(self.config.sweep.rate_name, rate, pools)
        system, status, reason = _system(arrival_rate, pools, n)
        if system is not None:
            status, reason = _verdict(spread.at(place), system)
        if status == UNSTABLE and system is not None and self.config.unstable == "error":
            self._unstable(i, label, reason)
        if status == IMPOSSIBLE:
            if not (own.dims or spread.dims):
                self.mistakes.add(f"policies[{i}]", f"{reason} (system {label!r})")
            system = None
        return system, status, reason

    def _unstable(self, i: int, system: str, reason: str) -> None:
        advice = "lower the rates, or say 'unstable: skip' to leave such points empty"
        prefix = f": policies[{i}]: "
        if not any(prefix in line for line in self.mistakes.lines):
            self.mistakes.add(f"policies[{i}]", f"{reason} (system {system!r}); {advice}")


@cache
def _system(
    arrival_rate: float, pools: Pools, n_servers: int | None
) -> tuple[System | None, str, str]:
    """Return a system, or why there is none."""
    try:
        return System(arrival_rate, pools, n_servers), "", ""
    except UnstableSystem as error:
        return None, UNSTABLE, str(error)
    except ValueError as error:
        return None, IMPOSSIBLE, str(error)


@cache
def _verdict(policy: Policy, system: System) -> tuple[str, str]:
    """Say why a policy cannot serve a system: a status and a reason, empty if it can."""
    try:
        policy.check(system)
        # Methods for finite systems start from the limit, or compare with it.
        policy.check(System(system.arrival_rate, system.pools))
    except UnstableSystem as error:
        return UNSTABLE, str(error)
    except ValueError as error:
        return IMPOSSIBLE, str(error)
    return "", ""


def _pool(told: Mapping[str, Any]) -> Pool:
    for name, value in told.items():
        if isinstance(value, str):
            allowed = "an integer" if name == "buffer" else "a positive number, a ratio such as 2/3"
            raise ValueError(
                f"{name} = {value!r}: must be {allowed}, or a formula of axes of the study's own"
            )
    return Pool(told["fraction"], told["speed"], told["buffer"])


def _pools(told: Mapping[str, Any]) -> Pools:
    pools = [_pool(pool) for pool in told["pools"]]
    if told["capacity"] is not None:
        scale = Fraction(told["capacity"]) / exact_capacity(pools)
        pools = [Pool(pool.fraction, pool.speed * scale, pool.buffer) for pool in pools]
    return System(LIGHT, pools).pools


def _arrival_rate(rate_name: str, rate: Fraction, pools: Pools) -> float:
    if rate_name == "arrival_rate":
        return float(rate)
    return float(rate * exact_capacity(pools))


def _label(item: PolicyConfig) -> str:
    def text(value: object) -> str:
        if isinstance(value, (list, tuple)):
            return f"({','.join(str(part) for part in value)})"
        return str(value).lower() if isinstance(value, bool) else str(value)

    told = [f"{name}={text(value)}" for name, value in item.parameters.items()]
    return " ".join([item.name, *told])
