"""The fixed point for other than exponential sizes."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import manyserver as ms
from manyserver.joining import JoiningLaw
from manyserver.sizes import SizeLaw

ONE_POOL = [ms.Pool(1, 1)]
TWO_POOLS = [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")]
HYPER = ms.size_law("hyperexponential", scv=4)
ERLANG = ms.size_law("erlang", shape=2)
SCHEME1 = ms.policy("scheme1", d=[2, 2])


@pytest.mark.parametrize("sizes", [HYPER, ERLANG], ids=str)
def test_single_queues(sizes: SizeLaw) -> None:
    """Random routing: Pollaczek and Khinchine's mean."""
    system = ms.System(0.5, ONE_POOL)
    result = ms.fixed_point(system, ms.policy("random"), sizes=sizes, discipline="fcfs")
    wait = (1 + sizes.scv) / 2
    assert float(result.sojourn_mean) == pytest.approx(1 + wait, rel=1e-12)
    assert float(result.waiting_probability) == pytest.approx(0.5, rel=1e-12)
    assert result.attrs["discipline"] == "fcfs"


def test_exponential_phases_are_the_exponential_law() -> None:
    """A hyperexponential law of two equal laws is solved with phases, and is exponential."""
    system = ms.System(0.9, TWO_POOLS)
    alike = ms.size_law("hyperexponential", scv=1)
    result = ms.fixed_point(system, SCHEME1, sizes=alike, discipline="fcfs")
    known = ms.fixed_point(system, SCHEME1)
    levels = known.sizes["level"]
    assert result.queue_tail.values[:, :levels] == pytest.approx(known.queue_tail.values, abs=1e-13)
    assert float(result.sojourn_mean) == pytest.approx(1.7549913643, abs=1e-10)
    assert float(result.residual) < 1e-13
    # Small tails are right relative to themselves.
    few = known.queue_tail.values[:, 1:8]
    assert result.queue_tail.values[:, 1:8] == pytest.approx(few, rel=1e-8)


def test_trajectories_end_there() -> None:
    """The differential equations of the numbers of jobs and the phases, from empty on."""
    system, levels = ms.System(0.6, TWO_POOLS), 14
    policy = ms.policy("scheme2", d=[2, 1])
    phases = HYPER.phases()
    assert phases is not None
    alpha, rates = phases
    leave = -rates.sum(axis=1)
    law = JoiningLaw(system, policy, levels)

    def drift(_: float, flat: np.ndarray) -> np.ndarray:
        # Part of the pool's servers at a level and in a phase; idle ones wait in phase 0.
        state = flat.reshape(2, levels, 2)
        tails = state.sum(axis=2)[:, ::-1].cumsum(axis=1)[:, ::-1]
        up = system.arrival_rate * law.densities(tails)[:, :-1, None] * state[:, :-1]
        up[:, 0] = up[:, 0].sum(axis=1)[:, None] * alpha
        change = np.zeros_like(state)
        change[:, 1:] += up
        change[:, 0, 0] -= up[:, 0].sum(axis=1)
        change[:, 1:-1] -= up[:, 1:]
        speed = system.speeds[:, None, None]
        change[:, 1:] += speed * (state[:, 1:] @ rates)
        done = (speed * state[:, 1:] * leave).sum(axis=2)
        change[:, 1:-1] += done[:, 1:, None] * alpha
        change[:, 0, 0] += done[:, 0]
        return np.asarray(change.ravel())

    start = np.zeros((2, levels, 2))
    start[:, 0, 0] = 1.0
    path = solve_ivp(drift, (0, 150), start.ravel(), method="LSODA", rtol=1e-8, atol=1e-11)
    end = path.y[:, -1].reshape(2, levels, 2).sum(axis=2)
    tails = end[:, ::-1].cumsum(axis=1)[:, ::-1]
    found = ms.fixed_point(system, policy, sizes=HYPER, discipline="fcfs")
    assert found.queue_tail.values[:, :levels] == pytest.approx(tails, abs=1e-6)


def test_buffers() -> None:
    """Flows balance: what servers do is what is accepted."""
    pools = [ms.Pool("1/2", "2/3", buffer=3), ms.Pool("1/2", "4/3", buffer=2)]
    system = ms.System(1.1, pools)
    result = ms.fixed_point(system, SCHEME1, sizes=HYPER, discipline="fcfs")
    accepted = 1.1 * (1 - float(result.blocking_probability))
    busy = result.queue_tail.values[:, 1] @ (system.fractions * system.speeds)
    assert busy == pytest.approx(accepted, rel=1e-11)
    assert 0.1 < float(result.blocking_probability) < 0.5


def test_processor_sharing_takes_any_law() -> None:
    system = ms.System(0.9, TWO_POOLS)
    for sizes in (ms.size_law("power_law"), HYPER):
        result = ms.fixed_point(system, SCHEME1, sizes=sizes)
        assert float(result.sojourn_mean) == pytest.approx(1.7549913643, abs=1e-10)
        assert result.attrs["sizes"] == repr(sizes)
        assert result.attrs["discipline"] == "ps"


def test_no_second_job_no_difference() -> None:
    """Below the capacity JSQ leaves every job alone at its server."""
    system, policy = ms.System(0.9, ONE_POOL), ms.policy("jsq")
    sizes = ms.size_law("power_law")
    result = ms.fixed_point(system, policy, sizes=sizes, discipline="fcfs")
    assert float(result.sojourn_mean) == pytest.approx(1, abs=1e-14)


def test_what_is_not_known_is_said() -> None:
    system = ms.System(0.9, TWO_POOLS)
    with pytest.raises(ValueError, match="sizes = power_law: must be of phase type"):
        ms.fixed_point(system, SCHEME1, sizes=ms.size_law("power_law"), discipline="fcfs")
    crowded = ms.System(0.95, [ms.Pool("1/2", "1/5"), ms.Pool("1/2", "9/5")])
    with pytest.raises(ValueError, match="announce themselves"):
        ms.fixed_point(crowded, ms.policy("sed"), sizes=HYPER)
