"""What a method is: how a point of a study is computed."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict

from manyserver.registry import DEFAULT_MODEL

if TYPE_CHECKING:
    import xarray as xr

    from manyserver.simulation.replications import Cache

__all__ = ["METHOD", "NOT_KNOWN", "ROLE", "Draws", "Method", "Problem", "Role", "Strict"]

METHOD = "method_name"
"""Dimension of a cube along which the methods lie."""
NOT_KNOWN = "not known"
"""Status of a point of which a method knows nothing."""
ROLE = "method_role"
"""Coordinate along it with the value of each method's role."""


class Role(Enum):
    """What a method's results are, by which figures and fits ask for them."""

    SIMULATION = "simulation"
    """The stationary law at finite n_servers, drawn at random, with half-widths."""
    EXACT = "exact"
    """The stationary law at finite n_servers, but for rounding and truncation."""
    LIMIT = "limit"
    """The stationary law in the limit of infinitely many servers."""
    EXPANSION = "expansion"
    """The limit with its first correction, at finite n_servers."""
    RELAXATION = "relaxation"
    """How fast the start is forgotten."""
    PATHS = "paths"
    """How the system moves from one state to another, in the limit."""

    @property
    def in_limit(self) -> bool:
        """Whether it is about the limit, and not about a finite n_servers."""
        return self in (Role.LIMIT, Role.PATHS)


class Strict(BaseModel):
    """Options, or a part of a configuration, in which unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


@dataclass(frozen=True)
class Draws:
    """What a random method starts from.

    Parameters
    ----------
    seed : int
        Of all random numbers.
    cache : Cache, optional
        What points with the same :meth:`Method.cache_key` have kept.
    """

    seed: int = 0
    cache: "Cache | None" = None


class Problem(Protocol):
    """What the methods of a model compute."""

    @property
    def n_servers(self) -> int | None:
        """Number of servers; None in the limit."""


P = TypeVar("P", bound=Problem)
Options = TypeVar("Options", bound=BaseModel)


class Method(ABC, Generic[P, Options]):
    """How points of one model are computed.

    What it computes with is imported inside :meth:`compute`, so that reading a study stays fast.
    Its module is where the fingerprint of its code begins, so it imports nothing of
    :mod:`manyserver.study`.

    Attributes
    ----------
    name : str
        What studies call it.
    title : str
        One line of plain words.
    role : Role
        What its results are.
    options_class : type
        A frozen pydantic model of its options, each with a default.
    model : str
        Name of the model whose points it computes.
    random : bool
        Whether the result depends on a seed.
    compiles : bool
        Whether it has a kernel compiled, which takes some seconds once for every version of its
        code.
    starts_from : tuple of str
        Packages that it uses for a starting point alone, on which the law of its result does not
        depend; the fingerprint leaves them out.
    primary_variable : str
        The variable without which a result is wrong.
    takes_sizes : bool
        Whether it also solves problems with job sizes and a discipline.
    seconds : tuple of float
        CPU time of a point, and of the longest ones, on a computer of 2024: a guess until points
        are stored.
    threads : int
        Points of a unit that a job of a cluster computes at a time; 1 where Python's lock lets
        only one be computed.
    memory_mb : int
        Megabytes of a job, besides what :meth:`memory` says.
    minutes : int
        Time of a job, besides that of its points: to start, to compile and to write.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    role: ClassVar[Role]
    options_class: type[Options]
    model: ClassVar[str] = DEFAULT_MODEL
    random: ClassVar[bool] = False
    compiles: ClassVar[bool] = False
    starts_from: ClassVar[tuple[str, ...]] = ()
    primary_variable: ClassVar[str] = "sojourn_mean"
    takes_sizes: ClassVar[bool] = False
    seconds: ClassVar[tuple[float, float]] = (0.2, 2.0)
    threads: ClassVar[int] = 1
    memory_mb: ClassVar[int] = 1000
    minutes: ClassVar[int] = 2

    @abstractmethod
    def compute(self, problem: P, options: Options, draws: Draws) -> "xr.Dataset":
        """Compute a point.

        Parameters
        ----------
        problem : Problem
            What to compute.
        options : pydantic model
            How.
        draws : Draws
            Without meaning if the method is not `random`.

        Returns
        -------
        xarray.Dataset
            Variables that the model knows. A method that finds out only now that it cannot compute
            the point returns none, and says so in the attribute ``status``.
        """

    def applies(self, problem: P) -> bool:
        """Whether it can compute this point; by default as its role says."""
        return self.role.in_limit == (problem.n_servers is None)

    def skip_reason(self, problem: P, options: Options) -> str:
        """Return why a point is left out although the method applies; empty if it is computed.

        It is a word or two for the cube, and must be quick, as it is asked before any job starts.
        """
        return ""

    def check(self, problem: P, options: Options) -> None:
        """Raise a ValueError if a study must not ask for this."""

    def cache_key(self, options: Options) -> dict[str, Any] | None:
        """Return the options in which points agree that can start from each other's work.

        None if the method keeps nothing.
        """
        return None

    def memory(self, problem: P) -> float:
        """Return the bytes that a point takes; 0 if `memory_mb` is enough for all."""
        return 0.0
