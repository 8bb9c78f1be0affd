"""The law of the sojourn time from the numbers of jobs that arrivals find."""

import numpy as np
import pytest

import manyserver as ms

ONE_POOL = [ms.Pool(1, 1)]
SCHEME1 = ms.policy("scheme1", d=[2, 2])
VARIANCES = [
    (("2/3", "4/3"), 0.9, 2.56744963, 3.82360449),
    (("1/5", "9/5"), 0.9, 22.2958361, 33.6489765),
    (("1/5", "9/5"), 0.5, 5.95189869, 6.01875844),
]


@pytest.mark.parametrize(("speeds", "rate", "fcfs", "ps"), VARIANCES)
def test_variances_of_scheme_1(
    speeds: tuple[str, str], rate: float, fcfs: float, ps: float
) -> None:
    system = ms.System(rate, [ms.Pool("1/2", speed) for speed in speeds])
    limit = ms.fixed_point(system, SCHEME1)
    for discipline, variance in {"fcfs": fcfs, "ps": ps}.items():
        law = ms.sojourn_law(system, SCHEME1, discipline=discipline, state=limit)
        assert float(law.sojourn_variance) == pytest.approx(variance, rel=5e-9)
        assert float(law.sojourn_mean) == pytest.approx(float(limit.sojourn_mean), rel=1e-12)
        mean = law.pool_share.values @ law.pool_sojourn_mean.values
        assert mean == pytest.approx(float(law.sojourn_mean), rel=1e-12)


def test_mm1_first_come_first_served() -> None:
    """Exponential of rate 1 - rho; the wait too, but zero with probability 1 - rho."""
    times = np.array([0.0, 1.0, 10.0])
    law = ms.sojourn_law(
        ms.System(0.8, ONE_POOL),
        ms.policy("random"),
        quantiles=[0.1, 0.5, 0.99],
        durations=times,
    )
    part = np.array([0.1, 0.5, 0.99])
    assert law.sojourn_cdf.values == pytest.approx(1 - np.exp(-0.2 * times))
    assert law.sojourn_quantile.values == pytest.approx(-np.log(1 - part) / 0.2)
    assert float(law.sojourn_variance) == pytest.approx(25)
    assert law.waiting_quantile.values == pytest.approx(
        np.maximum(0, -np.log((1 - part) / 0.8) / 0.2), abs=1e-9
    )
    assert float(law.waiting_mean) == pytest.approx(4)
    assert float(law.waiting_variance) == pytest.approx(0.8 * (2 - 0.8) / 0.2**2)


def test_mm1_processor_sharing() -> None:
    """Coffman, Muntz and Trotter: variance (2 + rho) / ((2 - rho) (1 - rho)**2)."""
    for rho in (0.3, 0.8):
        law = ms.sojourn_law(ms.System(rho, ONE_POOL), ms.policy("random"), discipline="ps")
        assert float(law.sojourn_mean) == pytest.approx(1 / (1 - rho), rel=1e-9)
        variance = (2 + rho) / ((2 - rho) * (1 - rho) ** 2)
        assert float(law.sojourn_variance) == pytest.approx(variance, rel=1e-9)


def test_quantiles_invert_the_law() -> None:
    system = ms.System(0.7, [ms.Pool("1/4", 2), ms.Pool("3/4", "1/3")])
    for discipline in ("fcfs", "ps"):
        part = [0.2, 0.5, 0.9, 0.999]
        once = ms.sojourn_law(
            system, ms.policy("scheme2", d=[1, 2]), discipline=discipline, quantiles=part
        )
        again = ms.sojourn_law(
            system,
            ms.policy("scheme2", d=[1, 2]),
            discipline=discipline,
            durations=once.sojourn_quantile.values,
        )
        assert again.sojourn_cdf.values == pytest.approx(part, abs=1e-10)


def test_unused_pools() -> None:
    """The optimal split leaves the slow pool out."""
    system = ms.System(0.3, [ms.Pool("1/2", "1/5"), ms.Pool("1/2", "9/5")])
    for discipline in ("fcfs", "ps"):
        law = ms.sojourn_law(system, ms.policy("optimal_split"), discipline=discipline)
        assert law.pool_share.values.tolist() == [0, 1]
        assert np.isnan(law.pool_sojourn_mean.values[0])
        assert float(law.sojourn_mean) == pytest.approx(1 / (1.8 - 0.6))


def test_levels_that_servers_pass_at_once() -> None:
    """SED above the capacity of the fast pool keeps nine jobs at every fast server."""
    system = ms.System(0.95, [ms.Pool("1/2", "1/5"), ms.Pool("1/2", "9/5")])
    policy = ms.policy("sed")
    for discipline in ("fcfs", "ps"):
        law = ms.sojourn_law(system, policy, discipline=discipline)
        expected = float(ms.fixed_point(system, policy).sojourn_mean)
        assert float(law.sojourn_mean) == pytest.approx(expected)
        assert float(law.pool_sojourn_mean[1]) == pytest.approx(9 / 1.8)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"discipline": "lifo"}, "discipline = 'lifo'"),
        ({"quantiles": [0.5, 1.0]}, "quantiles"),
        ({"state": ms.System(0.5, ONE_POOL)}, "state"),
    ],
)
def test_bad_parameters(parameters: dict[str, object], message: str) -> None:
    system = ms.System(0.9, [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")])
    if "state" in parameters:
        parameters = {"state": ms.fixed_point(ms.System(0.5, ONE_POOL), ms.policy("random"))}
    with pytest.raises(ValueError, match=message):
        ms.sojourn_law(system, SCHEME1, **parameters)  # type: ignore[arg-type]
