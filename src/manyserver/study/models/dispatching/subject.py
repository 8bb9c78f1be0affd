"""What a point computes: one system under one policy."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from manyserver.methods.dispatching import DispatchingProblem
from manyserver.model import System
from manyserver.policies import Policy
from manyserver.study.models.dispatching.jobs import Jobs

__all__ = ["Dispatching"]


@dataclass(frozen=True)
class Dispatching:
    """One system under one policy; with `jobs`, every job is followed."""

    system: System
    policy: Policy
    jobs: Jobs | None = None

    @property
    def problem(self) -> DispatchingProblem:
        """What a method computes."""
        jobs = () if self.jobs is None else (self.jobs.sizes, self.jobs.discipline)
        return DispatchingProblem(self.system, self.policy, *jobs)

    @cached_property
    def shared(self) -> dict[str, Any]:
        """All but the arrival rate."""
        pools = [
            {"fraction": str(pool.fraction), "speed": str(pool.speed), "buffer": pool.buffer}
            for pool in self.system.pools
        ]
        return {
            "system": {"n_servers": self.system.n_servers, "pools": pools},
            "policy": {"name": self.policy.name, **self.policy.parameters},
            **({} if self.jobs is None else {"jobs": self.jobs.told}),
        }

    @property
    def seeded(self) -> dict[str, Any]:
        """All that the result depends on, in the form from which the seed is derived."""
        return {**self.shared, "arrival_rate": self.system.arrival_rate}

    @property
    def parameters(self) -> dict[str, Any]:
        """All that the result depends on."""
        system = {**self.shared["system"], "arrival_rate": self.system.arrival_rate}
        return {**self.shared, "system": system}

    @property
    def title(self) -> str:
        """Name of the policy, and of the law of the sizes if there is one."""
        return " ".join([self.policy.name, *([self.jobs.sizes.name] if self.jobs else [])])

    @property
    def modules(self) -> tuple[str, ...]:
        """The module of the policy, and that of the law of the sizes."""
        chosen = [self.policy, *([self.jobs.sizes] if self.jobs else [])]
        return tuple(type(one).__module__ for one in chosen)
