"""The typed form of a study of dispatching policies."""

from difflib import get_close_matches
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from manyserver import disciplines
from manyserver.checks import is_whole, shown
from manyserver.model import read_ratio
from manyserver.study.config.axes import AXIS_SCHEMA, Axis, Grid, Servers
from manyserver.study.config.base import Strict, StudyConfig, methods_model
from manyserver.study.config.formulas import is_formula

__all__ = [
    "Config",
    "JobsConfig",
    "PolicyConfig",
    "PoolConfig",
    "SizesConfig",
    "SweepConfig",
    "SystemConfig",
]

if TYPE_CHECKING:
    DisciplineName = str
else:
    DisciplineName = Literal[disciplines.names()]


def _ratio(value: object, info: ValidationInfo) -> Fraction | str:
    if isinstance(value, str) and is_formula(value):
        return value
    ratio, note = read_ratio(value, info.field_name or "value")
    if note is not None and info.context is not None:
        info.context["notes"].append(note)
    return ratio


Ratio = Annotated[
    Fraction | str,
    BeforeValidator(_ratio),
    WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string"}]}),
]


def _count(value: object) -> object:
    if not (isinstance(value, str) and is_formula(value)) and not (is_whole(value) and value >= 1):
        raise ValueError(f"{shown(value)}: must be an integer, at least 1")
    return value


Count = Annotated[
    int | str,
    BeforeValidator(_count),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]}),
]


class PoolConfig(Strict):
    """Servers of one speed; each value may be a formula of axes of the study's own."""

    fraction: Ratio
    """Fraction of all servers that are in this pool, in (0, 1], such as 1/2; those of a system sum
    to 1."""
    speed: Ratio
    """Work done per unit of time by one server, greater than zero; such as 2/3."""
    buffer: Count | None = None
    """Most jobs that a server holds, the one in service included; no bound if left out. A full
    server ranks after all others, and an arrival is blocked if all servers that it looks at are
    full. With a buffer in some pool the load may be 1 or more."""


class SystemConfig(Strict):
    """The servers of one system."""

    pools: tuple[PoolConfig, ...] = Field(min_length=1)
    """The pools; their fractions sum to 1."""
    capacity: Ratio | None = None
    """Work that all servers can do per unit of time, per server: the speeds are multiplied by one
    number, so that it is this. By default they are taken as they stand."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The same as plain values and exact ratios."""
        return {"pools": [dict(pool) for pool in self.pools], "capacity": self.capacity}


class PolicyConfig(Strict):
    """One dispatching policy: its name, its own parameters, and how figures call it."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str
    """Name in the registry of policies, such as scheme1."""
    label: str | None = None
    """What tables and figures call it; by default made of the name and the parameters."""
    systems: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Labels of the systems that it is computed for; all if left out."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The policy's own parameters."""
        return dict(self.model_extra or {})


class SizesConfig(Strict):
    """A law of the job sizes: its name and its own parameters."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str
    """Name in the registry of laws, such as pareto."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The law's own parameters."""
        return dict(self.model_extra or {})


class JobsConfig(Strict):
    """How large jobs are, and how a server works on those that it holds."""

    sizes: SizesConfig | None = None
    """Law of the job sizes, with mean one, the unit of time; exponential if left out."""
    discipline: DisciplineName = "ps"
    """Processor sharing ("ps"), or first come, first served ("fcfs")."""


def _axis(value: object) -> object:
    """Take values alone for an axis that is not described."""
    if isinstance(value, dict) and "start" not in value:
        return value
    return {"values": value}


class SweepConfig(Strict):
    """The axes of the study: exactly one of arrival_rate and load, n_servers, and any others.

    A key that is none of these is an axis of the study's own. Its name stands for its values in
    systems, policies and jobs.
    """

    model_config = ConfigDict(
        extra="allow", frozen=True, json_schema_extra={"additionalProperties": AXIS_SCHEMA}
    )
    __pydantic_extra__: dict[str, Annotated[Axis, BeforeValidator(_axis)]]

    arrival_rate: Grid | None = None
    """Jobs per unit of time and server: a number, a list, or {start, stop, step or count}; such
    that the load is below 1 unless a pool has a `buffer`."""
    load: Grid | None = None
    """Arrival rate over capacity, instead of `arrival_rate`; below 1 unless a pool has a `buffer`,
    in the same forms."""
    n_servers: Servers
    """Numbers of servers, and the word `limit` for infinitely many; every pool gets a whole number
    of servers."""

    @model_validator(mode="after")
    def _one_rate(self) -> "SweepConfig":
        if (self.arrival_rate is None) == (self.load is None):
            told = "must have exactly one of the keys arrival_rate and load"
            for name in self.own:
                if meant := get_close_matches(name, ["arrival_rate", "load"], 1):
                    told += f"; did you mean {meant[0]!r} by {name!r}?"
            raise PydanticCustomError("one_rate", "{told}", {"told": told})
        return self

    @property
    def own(self) -> dict[str, Axis]:
        """The axes of the study's own by name."""
        return dict(self.__pydantic_extra__)

    @property
    def rate_name(self) -> Literal["arrival_rate", "load"]:
        """Which of the two axes is swept."""
        return "load" if self.arrival_rate is None else "arrival_rate"

    @property
    def rates(self) -> tuple[Fraction, ...]:
        """The values on that axis."""
        return self.load or self.arrival_rate or ()


class Config(StudyConfig):
    """One study: systems, policies, the sweep over them, and what is drawn from the results."""

    model: Literal["dispatching"] = "dispatching"
    """What the study is about: policies that send arrivals to many parallel servers."""
    systems: dict[str, SystemConfig] = Field(min_length=1)
    """The systems by label, at least one; see below."""
    policies: tuple[PolicyConfig, ...] = Field(min_length=1)
    """The policies, at least one; see below."""
    jobs: dict[str, JobsConfig] | None = Field(default=None, min_length=1)
    """Job sizes and disciplines by label, one more axis; see below. Then every job is followed,
    which gives percentiles of sojourn times. If left out, sizes are exponential, and only numbers
    of jobs are computed."""
    sweep: SweepConfig
    """The axes; see below."""
    methods: methods_model("dispatching")  # type: ignore[valid-type]
    """Which methods compute the points, at least one, each with its options; see below."""
    unit: tuple[str, ...] = ("policy", "n_servers")
    """Points that agree on these axes are computed by one job: `system`, `policy`, `jobs`,
    `n_servers`, the swept one of `arrival_rate` and `load`, and axes of the study's own. Changing
    it computes nothing again."""
    unstable: Literal["error", "skip"] = "error"
    """What to do with points at which a policy is unstable although the load is below 1: `error`
    refuses the study, `skip` leaves them empty with the status `unstable`."""
