"""PULL with several routers, arXiv:1512.07873."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from manyserver.claims.base import STOLYAR, Claim
from manyserver.claims.evidence import Evidence
from manyserver.claims.patterns import Beats, Falls, Fitted, Valued
from manyserver.methods import Role
from manyserver.statistics.erlang import erlang_b, erlang_c

if TYPE_CHECKING:
    from manyserver.claims.results import Results

STUDY, INFORMATION = "pull_routers", "how_much_information"
ROUTERS = [f"pull routers={r}" for r in (1, 2, 5, 10)]
UNBOUNDED, TWO_SPEEDS = "no buffer bound", "C = (2/3, 4/3), buffer 5"
WAITING, BLOCKING = "waiting_probability", "blocking_probability"


class WaitingVanishes(Falls):
    """The theorem, as far as finitely many servers can tell."""

    paper = STOLYAR
    studies = (STUDY,)
    variable = WAITING
    servers: ClassVar[tuple[float, ...]] = (20.0, 50.0, 200.0)


class WaitingFalls(WaitingVanishes):
    """Equal servers, no buffers."""

    name = "waiting_falls"
    number = "Theorem, infinite buffers"
    statement = "The probability that a job waits falls as servers are added, for 1 to 10 routers."
    labels = {"system": UNBOUNDED, "policy": ROUTERS}


class WaitingFallsTwoSpeeds(WaitingVanishes):
    """Servers of two speeds."""

    name = "waiting_falls_two_speeds"
    number = "Theorem, several pools"
    statement = "It also falls on servers of two speeds, for 1 to 10 routers."
    labels = {"system": TWO_SPEEDS, "policy": ROUTERS}


class BlockingFalls(WaitingVanishes):
    """Finite buffers."""

    name = "blocking_falls"
    number = "Theorem, finite buffers"
    statement = (
        "The probability that a job is blocked falls as servers are added, with room for one or "
        "two jobs at each, for 2 to 10 routers."
    )
    variable = BLOCKING
    labels = {"system": ["buffer 1", "buffer 2"], "policy": ROUTERS[1:]}


class BlockingFallsOneRouter(WaitingVanishes):
    """Finite buffers and one router."""

    name = "blocking_falls_one_router"
    number = "Theorem, finite buffers"
    statement = "So it does with one router, to 50 servers."
    variable = BLOCKING
    servers = (20.0, 30.0, 50.0)
    labels = {"system": ["buffer 1", "buffer 2"], "policy": ROUTERS[0]}


class BlockingFallsLongBuffers(WaitingVanishes):
    """Long finite buffers."""

    name = "blocking_falls_long_buffers"
    number = "Theorem, finite buffers"
    statement = (
        "So it does with room for five jobs at servers of one or two speeds, for 5 and 10 routers."
    )
    variable = BLOCKING
    servers = (20.0, 30.0, 50.0, 80.0)
    labels = {"system": ["buffer 5", TWO_SPEEDS], "policy": ROUTERS[2:]}


class SmallWith200(Claim):
    """Waiting or blocking together."""

    name = "rarely_waiting_or_blocked"
    paper = STOLYAR
    number = "Theorem, waiting or blocking"
    statement = (
        "With 200 servers at load .7, one in ten jobs at most waits or is blocked, for every "
        "number of routers and every buffer."
    )
    studies = (STUDY,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Add the two probabilities."""
        at = {"n_servers": 200.0, "policy": ROUTERS}
        blocked = results.read(STUDY, BLOCKING, Role.SIMULATION, **at)
        for a, b in zip(results.read(STUDY, WAITING, Role.SIMULATION, **at), blocked, strict=True):
            yield (a - (b / -1)).below(0.1)


class NoWaitingInTheLimit(Valued):
    """The theorem itself."""

    name = "no_waiting_in_the_limit"
    paper = STOLYAR
    number = "Theorem, infinite buffers"
    statement = "In the limit no job waits, for every number of routers and every buffer."
    studies = (STUDY,)
    variable = WAITING
    low, high = -1e-12, 1e-12


class NoBlockingInTheLimit(NoWaitingInTheLimit):
    """The theorem itself."""

    name = "no_blocking_in_the_limit"
    number = "Theorem, finite buffers"
    statement = "In the limit no job is blocked, for every number of routers and every buffer."
    variable = BLOCKING


class NoWaitingHighLoad(NoWaitingInTheLimit):
    """Any load below one."""

    name = "no_waiting_at_higher_load"
    number = "Theorem, any load below one"
    statement = "In the limit no job waits at loads .7 and .9 on servers of two speeds."
    studies = (INFORMATION,)
    labels = {"policy": ["pull routers=2", "pull routers=5"]}


class OneMessage(Valued):
    """What it costs."""

    name = "one_message_per_job"
    paper = STOLYAR
    number = "Section 1"
    statement = (
        "A job costs one message at most (to within a hundredth; messages that take back an offer "
        "are not counted)."
    )
    studies = (STUDY,)
    variable = "messages_per_job"
    high = 1.01
    role = Role.SIMULATION


class OneMessageInTheLimit(Valued):
    """What it costs in the limit."""

    name = "one_message_per_job_in_the_limit"
    paper = STOLYAR
    number = "Section 1"
    statement = "In the limit a job costs one message."
    studies = (STUDY,)
    variable = "messages_per_job"
    low, high = 1 - 1e-9, 1 + 1e-9


class ErlangB(Claim):
    """One router and no room to wait: Erlang's loss system."""

    name = "one_router_is_erlang_b"
    stated = False
    paper = STOLYAR
    number = "Section 1, one router"
    statement = "With one router and room for one job at a server, blocking is Erlang's B formula."
    studies = (STUDY,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare the exact probability with the formula."""
        labels = {"system": "buffer 1", "policy": ROUTERS[0]}
        for blocked in results.read(STUDY, BLOCKING, Role.EXACT, **labels):
            n, load = (float(str(blocked.cell[axis])) for axis in ("n_servers", "load"))
            yield (blocked / erlang_b(int(n), load * n)).near(1.0, 1e-6)


class AboveErlangC(Claim):
    """A job that meets no idle server waits."""

    name = "one_router_below_erlang_c"
    stated = False
    paper = STOLYAR
    number = "Section 1, one router"
    statement = (
        "With one router and no bound of the buffers, fewer jobs wait than in Erlang's C formula, "
        "where servers share one queue."
    )
    studies = (STUDY,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare the simulated probability with the formula."""
        labels = {"system": UNBOUNDED, "policy": ROUTERS[0], "n_servers": [20.0, 30.0, 50.0, 80.0]}
        for waits in results.read(STUDY, WAITING, Role.SIMULATION, **labels):
            n, load = (float(str(waits.cell[axis])) for axis in ("n_servers", "load"))
            yield (waits / erlang_c(int(n), load * n)).below(1.0)


class ExponentialDecay(Fitted):
    """How fast with one router."""

    name = "one_router_decays_exponentially"
    stated = False
    paper = STOLYAR
    number = "Theorem, with the rate for one router"
    statement = (
        "With one router the probability that no server is idle falls exponentially with their "
        "number, at the rate load - 1 - log(load) (to .015)."
    )
    studies = (STUDY,)
    rows = {"parameter": "decay per server", "method": "exact"}
    tolerance = 0.015


class PowerDecay(Fitted):
    """How fast with several routers."""

    name = "several_routers_decay_like_one_over_n"
    stated = False
    paper = STOLYAR
    number = "Theorem, with the rate for several routers"
    statement = (
        "With two routers the probability that one has no idle server to offer falls like 1/n "
        "(exponent -1, to .35)."
    )
    studies = (STUDY,)
    rows = {
        "parameter": "exponent",
        "quantity": "empty_router_probability",
        "policy": "pull routers=2",
    }
    tolerance = 0.35


class ExponentialWithSeveral(Claim):
    """Whether it vanishes as fast with several routers."""

    name = "several_routers_decay_exponentially"
    stated = False
    paper = STOLYAR
    number = "Theorem, with the rate for several routers"
    statement = (
        "Waiting also vanishes exponentially with two routers: from 50 to 200 servers it falls by "
        "the factor that it falls by with one."
    )
    studies = (STUDY,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare how much less waiting there is with 200 servers than with 50."""
        fits = results.fitted(STUDY, parameter="decay per server", system=UNBOUNDED)
        rate = min(number.expected for number in fits)
        at = ({"n_servers": 200.0}, {"n_servers": 50.0})
        labels: dict[str, Any] = {"system": UNBOUNDED, "policy": ROUTERS[1]}
        for a, b in results.compared(STUDY, WAITING, *at, Role.SIMULATION, **labels):
            yield (a / b).below(float(np.exp(-rate * 150)))


class AsGoodAsJIQ(Claim):
    """Asymptotic optimality, against the policy that knows all idle servers."""

    name = "as_good_as_one_router"
    paper = STOLYAR
    number = "Section 1, asymptotic optimality"
    statement = "In the limit the mean sojourn time with several routers is that with one (JIQ)."
    studies = (INFORMATION,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare the limits."""
        for routers in (2, 5):
            at = ({"policy": f"pull routers={routers}"}, {"policy": "jiq"})
            for a, b in results.compared(INFORMATION, "sojourn_mean", *at):
                yield (a / b).near(1.0, 1e-9)


class AsGoodAsJSQ(Claim):
    """Asymptotic optimality, against the policy that knows all queues."""

    name = "as_good_as_shortest_queue"
    paper = STOLYAR
    number = "Section 1, asymptotic optimality"
    statement = "In the limit it is that of join the shortest queue, which knows all queues."
    studies = (INFORMATION,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare the limits."""
        for routers in (2, 5):
            at = ({"policy": f"pull routers={routers}"}, {"policy": "jsq"})
            for a, b in results.compared(INFORMATION, "sojourn_mean", *at):
                yield (a / b).near(1.0, 1e-9)


class LeastSojourn(Beats):
    """What "optimal" does not mean."""

    name = "least_mean_sojourn_time"
    stated = False
    paper = STOLYAR
    number = "Section 1, asymptotic optimality (said of waiting alone)"
    statement = (
        "In the limit PULL has the least mean sojourn time of all policies, also of those that "
        "prefer the fast ones of the idle servers."
    )
    studies = (INFORMATION,)
    better, worse = "pull routers=2", "jiq ties=fastest"


class BeatsSampling(Beats):
    """PULL against asking servers."""

    name = "pull_beats_two_choices"
    stated = False
    paper = STOLYAR
    number = "Section 1"
    statement = "In the limit PULL beats SQ(2), at a quarter of the messages."
    studies = (INFORMATION,)
    better, worse = "pull routers=2", "sq d=2"
