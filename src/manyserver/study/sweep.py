"""A study: the systems, policies and points that a configuration stands for.

Everything that can be wrong with a study is found here, before any point is computed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path

from pydantic import BaseModel

from manyserver import policies
from manyserver.model import Pool, System, UnstableSystem
from manyserver.policies import Policy
from manyserver.study import methods
from manyserver.study.config import PolicyConfig, StudyConfig, read_config
from manyserver.study.points import Point, Unit, units
from manyserver.study.validation import ConfigError, suggestion

__all__ = ["UNSTABLE", "Study", "read_study"]

UNSTABLE = "unstable"
"""Status of a point at which the policy cannot serve the system."""


@dataclass(frozen=True)
class Study:
    """A study that has been checked.

    Parameters
    ----------
    name : str
        Name of its file without the suffix.
    config : StudyConfig
        What the file says.
    policies : dict
        The policies by label.
    points : tuple of Point
        All points, in the order method, system, policy, number of servers, rate.
    notes : tuple of str
        What a reader should be told.
    """

    name: str
    config: StudyConfig
    policies: dict[str, Policy]
    points: tuple[Point, ...]
    notes: tuple[str, ...]

    @cached_property
    def units(self) -> dict[str, Unit]:
        """The units by name."""
        return {unit.name: unit for unit in units(self.points, self.config.unit)}


def read_study(path: Path) -> Study:
    """Read a study's file and check all of it.

    Raises
    ------
    ConfigError
        If anything in it is wrong; the message says what, where, and what is allowed.
    """
    config, notes = read_config(path)
    builder = _Builder(str(path), config)
    chosen = builder.policies()
    pools = builder.pools()
    builder.stop_on_errors()
    builder.check_servers(pools)
    builder.check_names(path.stem)
    builder.check_rates(pools)
    builder.stop_on_errors()
    points = tuple(builder.points(pools, chosen))
    builder.stop_on_errors()
    if not points:
        raise ConfigError([f"{path}: methods: none of them applies to any of sweep.n_servers"])
    return Study(path.stem, config, chosen, points, tuple(notes))


class _Builder:
    """Builds the parts of a study and gathers what is wrong with them."""

    def __init__(self, where: str, config: StudyConfig):
        self.where = where
        self.config = config
        self.errors: list[str] = []

    def error(self, key: str, message: object) -> None:
        self.errors.append(f"{self.where}: {key}: {message}")

    def stop_on_errors(self) -> None:
        if self.errors:
            raise ConfigError(self.errors)

    def check_names(self, stem: str) -> None:
        if stem == "points":
            self.error("file name", "must not be points.yaml; results/points holds the store")
        if not self.config.methods_used:
            self.error("methods", f"must name at least one of {', '.join(methods.names())}")
        other = {"load": "arrival_rate", "arrival_rate": "load"}[self.config.sweep.rate_name]
        if other in self.config.unit:
            self.error("unit", f"{other!r} is not an axis of this study's sweep")
        for key in ("figures", "fits"):
            titles = [item.title for item in getattr(self.config, key)]
            for i, title in enumerate(titles):
                if title in titles[:i]:
                    self.error(f"{key}[{i}].name", f"{title!r} occurs twice; must be unique")

    def policies(self) -> dict[str, Policy]:
        found: dict[str, Policy] = {}
        for i, item in enumerate(self.config.policies):
            key = f"policies[{i}]"
            try:
                policy = policies.policy(item.name, **item.parameters)
            except (ValueError, TypeError) as error:
                self.error(key, error)
                continue
            label = item.label or _label(policy, item)
            if label in found:
                self.error(f"{key}.label", f"{label!r} occurs twice; must be unique")
            found[label] = policy
            for system in item.systems or ():
                if system not in self.config.systems:
                    told = suggestion(system, self.config.systems)
                    self.error(f"{key}.systems", f"there is no system {system!r}; {told}")
        return found

    def served(self, policy: int, system: str) -> bool:
        """Whether a policy is computed for a system."""
        only = self.config.policies[policy].systems
        return only is None or system in only

    def pools(self) -> dict[str, tuple[Pool, ...]]:
        found: dict[str, tuple[Pool, ...]] = {}
        for label, item in self.config.systems.items():
            pools: list[Pool] = []
            for i, pool in enumerate(item.pools):
                try:
                    pools.append(Pool(pool.fraction, pool.speed))
                except ValueError as error:
                    self.error(f"systems.{label}.pools[{i}]", error)
            if len(pools) < len(item.pools):
                continue
            try:
                found[label] = System(1e-9, pools).pools
            except ValueError as error:
                self.error(f"systems.{label}", error)
        return found

    def check_servers(self, pools: dict[str, tuple[Pool, ...]]) -> None:
        for label, these in pools.items():
            for n_servers in self.config.sweep.n_servers:
                try:
                    System(1e-9, these, n_servers)
                except ValueError as error:
                    self.error("sweep.n_servers", f"{error} (system {label!r})")

    def check_rates(self, pools: dict[str, tuple[Pool, ...]]) -> None:
        sweep = self.config.sweep
        for label, these in pools.items():
            for rate in sweep.rates:
                try:
                    System(_arrival_rate(sweep.rate_name, rate, these), these)
                except UnstableSystem as error:
                    told = error if sweep.rate_name == "arrival_rate" else "must be below 1"
                    shown = "" if sweep.rate_name == "arrival_rate" else f"load = {float(rate)}: "
                    self.error(f"sweep.{sweep.rate_name}", f"{shown}{told} (system {label!r})")

    def points(
        self, pools: dict[str, tuple[Pool, ...]], chosen: dict[str, Policy]
    ) -> Iterator[Point]:
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
        for method, options in self.config.methods_used.items():
            module = methods.load(method)
            told = _told(options)
            for system_label in pools:
                for i, (policy_label, policy) in enumerate(chosen.items()):
                    for n_servers in sweep.n_servers:
                        for rate in sweep.rates:
                            system = systems[system_label, n_servers, rate]
                            if self.served(i, system_label) and module.applies(system):
                                yield Point(
                                    method,
                                    system,
                                    policy,
                                    labels={
                                        "system": system_label,
                                        "policy": policy_label,
                                        "n_servers": n_servers,
                                        sweep.rate_name: float(rate),
                                    },
                                    options=told,
                                    study_seed=self.config.seed,
                                    left_out=(
                                        module.refusal(system, policy, options)
                                        if stable[i, system_label, n_servers, rate]
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
            for place, system in systems.items():
                if not self.served(i, place[0]):
                    continue
                stable[i, *place] = True
                try:
                    policy.check(system)
                    # Methods for finite systems start from the limit, or compare with it.
                    policy.check(System(system.arrival_rate, system.pools))
                except UnstableSystem as error:
                    stable[i, *place] = False
                    if self.config.unstable == "error":
                        self._unstable(i, place[0], error)
                except ValueError as error:
                    self.error(f"policies[{i}]", f"{error} (system {place[0]!r})")
        return stable

    def _unstable(self, i: int, system: str, error: UnstableSystem) -> None:
        advice = "lower the rates, or say 'unstable: skip' to leave such points empty"
        prefix = f"{self.where}: policies[{i}]: "
        if not any(line.startswith(prefix) for line in self.errors):
            self.error(f"policies[{i}]", f"{error} (system {system!r}); {advice}")


def _arrival_rate(rate_name: str, rate: Fraction, pools: tuple[Pool, ...]) -> float:
    if rate_name == "arrival_rate":
        return float(rate)
    return float(rate * sum((pool.fraction * pool.speed for pool in pools), start=Fraction(0)))


def _told(options: BaseModel) -> dict[str, object]:
    # A default is part of the code, which the fingerprint covers; leaving it out here means that
    # a new option with a default changes no point.
    return options.model_dump(exclude_defaults=True)


def _label(policy: Policy, item: PolicyConfig) -> str:
    def text(value: object) -> str:
        if isinstance(value, (list, tuple)):
            return f"({','.join(str(part) for part in value)})"
        return str(value).lower() if isinstance(value, bool) else str(value)

    told = [f"{name}={text(value)}" for name, value in item.parameters.items()]
    return " ".join([policy.name, *told])
