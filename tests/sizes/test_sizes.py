"""Every law agrees with itself, with its samples, and with scipy where scipy has it."""

import json
import math
import os
import re
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.sizes.laws import laws

import manyserver as ms
from manyserver.sizes import SizeLaw, names, size_class
from manyserver.sizes.base import invert

SEED = int(os.environ.get("MANYSERVER_TEST_SEED", "1"))
SAMPLES = 4000
EVERY = pytest.mark.parametrize("law", laws(), ids=str)
DISCRETE = {"deterministic", "empirical"}
GRID = np.concatenate([[0.0], np.geomspace(1e-5, 1e9, 20_000)])


def test_the_registry_finds_every_law() -> None:
    assert set(names()) >= {
        "deterministic",
        "empirical",
        "erlang",
        "exponential",
        "hyperexponential",
        "lognormal",
        "pareto",
        "phase_type",
        "power_law",
        "weibull",
    }
    assert all(size_class(name).name == name for name in names())


@EVERY
def test_the_mean_is_one(law: SizeLaw) -> None:
    assert law.mean == 1
    left = np.trapezoid(1 - law.cdf(GRID), GRID)
    assert left == pytest.approx(1, rel=1e-3)


@EVERY
def test_variance(law: SizeLaw) -> None:
    """The mean residual is (1 + scv) / 2."""
    residual = np.trapezoid(1 - law.residual_cdf(GRID), GRID)
    if law.has_moment(2):
        assert law.variance == law.scv
        assert residual == pytest.approx((1 + law.scv) / 2, rel=2e-3)
    else:
        assert math.isinf(law.scv)
        assert residual > 4


@EVERY
def test_scaling(law: SizeLaw) -> None:
    wide = type(law)(**law.parameters | {"mean": 4.0})
    x = np.linspace(0.01, 5, 50)
    assert wide.cdf(4 * x) == pytest.approx(law.cdf(x), abs=1e-12)
    assert wide.quantile(0.7) == pytest.approx(4 * law.quantile(0.7), rel=1e-9)
    assert (wide.mean, wide.scv) == pytest.approx((4, law.scv))
    assert wide.variance == pytest.approx(16 * law.variance)


@EVERY
def test_cdf_and_quantile(law: SizeLaw) -> None:
    x = np.array([-1.0, 0.0, *np.geomspace(1e-3, 1e4, 80)])
    for cdf in (law.cdf(x), law.length_biased_cdf(x), law.residual_cdf(x)):
        assert cdf[0] == 0
        assert (np.diff(cdf) >= -1e-12).all()
        assert (cdf >= 0).all()
        assert (cdf <= 1).all()
    part = np.array([0.001, 0.3, 0.5, 0.9, 0.9999])
    at = law.quantile(part)
    assert (law.cdf(at) >= part - 1e-12).all()
    assert (law.cdf(at * (1 - 1e-9)) <= part + 1e-9).all() or law.name in DISCRETE
    assert at == pytest.approx(invert(law.cdf, part, 1.0), rel=1e-9)
    assert law.residual_cdf(law.residual_quantile(part)) == pytest.approx(part, abs=1e-9)


@EVERY
def test_the_residual_law_has_the_tail_as_its_density(law: SizeLaw) -> None:
    x = np.linspace(0, 8, 16_001)
    tail = 1 - law.cdf(x)
    grown = np.concatenate([[0.0], np.cumsum((tail[1:] + tail[:-1]) / 2 * np.diff(x))])
    assert law.residual_cdf(x) == pytest.approx(grown, abs=5e-4)


def assert_law(sample: np.ndarray, cdf: np.ndarray) -> None:
    """Kolmogorov and Smirnov, at the right of jumps: rejects with probability at most 1e-6."""
    order = np.argsort(sample)
    last = np.append(np.diff(sample[order]) > 0, True)
    distance = np.abs(np.arange(1, len(sample) + 1) / len(sample) - cdf[order])[last].max()
    assert stats.kstwo.sf(distance, len(sample)) > 1e-6


@EVERY
def test_samples(law: SizeLaw) -> None:
    rng = np.random.default_rng(SEED)
    sizes = law.sample(rng, SAMPLES)
    assert sizes.shape == (SAMPLES,)
    assert_law(sizes, law.cdf(sizes))
    biased = law.sample_length_biased(rng, SAMPLES)
    assert_law(biased, law.length_biased_cdf(biased))
    residual = law.sample_residual(rng, SAMPLES)
    assert_law(residual, law.residual_cdf(residual))
    again = law.sample(np.random.default_rng(SEED), SAMPLES)
    assert (again == sizes).all()


@EVERY
def test_phases_are_the_same_law(law: SizeLaw) -> None:
    phases = law.phases()
    if phases is None:
        assert law.name not in {"erlang", "exponential", "hyperexponential", "phase_type"}
        return
    other = ms.size_law("phase_type", alpha=phases[0].tolist(), T=phases[1].tolist())
    x = np.linspace(0, 20, 60)
    assert other.mean == pytest.approx(1)
    assert other.scv == pytest.approx(law.scv)
    assert other.cdf(x) == pytest.approx(law.cdf(x), abs=1e-12)
    assert other.length_biased_cdf(x) == pytest.approx(law.length_biased_cdf(x), abs=1e-12)


@EVERY
def test_parameters_are_plain_and_complete(law: SizeLaw) -> None:
    parameters = json.loads(json.dumps(law.parameters))
    assert ms.size_law(law.name, **parameters) == law
    assert hash(ms.size_law(law.name, **parameters)) == hash(law)


ORACLES = [
    (ms.size_law("exponential"), stats.expon()),
    (ms.size_law("erlang", shape=4), stats.gamma(4, scale=1 / 4)),
    (ms.size_law("lognormal", scv=3), stats.lognorm(math.sqrt(math.log(4)), scale=1 / 2)),
    (ms.size_law("pareto", shape=2.5), stats.pareto(2.5, scale=0.6)),
    (ms.size_law("power_law"), stats.pareto(2, scale=0.5)),
    (ms.size_law("weibull", shape=0.5), stats.weibull_min(0.5, scale=0.5)),
]


@pytest.mark.parametrize(("law", "oracle"), ORACLES, ids=[str(law) for law, _ in ORACLES])
def test_scipy_agrees(law: SizeLaw, oracle: Any) -> None:
    x = np.geomspace(0.01, 100, 40)
    part = np.array([0.01, 0.5, 0.99])
    assert law.cdf(x) == pytest.approx(oracle.cdf(x), abs=1e-13)
    assert law.quantile(part) == pytest.approx(oracle.ppf(part))
    assert law.mean == pytest.approx(oracle.mean())
    assert law.variance == pytest.approx(oracle.var())


def test_which_moments_exist() -> None:
    heavy = ms.size_law("pareto", shape=2.5)
    assert heavy.has_moment(2)
    assert not heavy.has_moment(2.5)
    assert heavy.tail_index == 2.5
    assert math.isinf(ms.size_law("power_law").variance)
    assert ms.size_law("lognormal", scv=1).has_moment(100)


def test_the_power_law_of_the_paper() -> None:
    """P(X > x) = 1 / (4 x^2) from 1/2 on."""
    x = np.array([0.4, 0.5, 1.0, 10.0])
    assert 1 - ms.size_law("power_law").cdf(x) == pytest.approx([1, 1, 1 / 4, 1 / 400])


def test_balanced_means() -> None:
    law = ms.size_law("hyperexponential", scv=4)
    assert isinstance(law, size_class("hyperexponential"))
    assert law.weights * law.means == pytest.approx([0.5, 0.5])  # type: ignore[attr-defined]


BAD = [
    ("paretto", {}, "did you mean 'pareto'"),
    ("pareto", {}, "shape: is missing"),
    ("pareto", {"shape": 1.001}, "shape = 1.001: must be a number from 1.1 to 1e+06"),
    ("pareto", {"shap": 2}, "did you mean 'shape'"),
    ("power_law", {"shape": 3}, "shape = 3"),
    ("exponential", {"mean": 0}, "mean = 0: must be a number from 1e-100 to 1e+100"),
    ("exponential", {"mean": "1"}, "mean = '1': must be a number"),
    ("exponential", {"mean": True}, "mean = True"),
    ("erlang", {"shape": 1.5}, "shape = 1.5: must be an integer >= 1 and <= 1000"),
    ("hyperexponential", {"scv": 0.9}, "scv = 0.9: must be a number from 1 to 1e+06"),
    ("lognormal", {"scv": 0}, "scv = 0: must be a number from 1e-12 to 1e+12"),
    ("weibull", {"shape": 0.01}, "shape = 0.01: must be a number from 0.05 to 10000"),
    ("phase_type", {"alpha": [0.5], "T": [[-1]]}, "alpha = "),
    ("phase_type", {"alpha": [1, 0], "T": [[-1, 1]]}, "T = "),
    ("phase_type", {"alpha": [1, 0], "T": [[-1, 2], [0, -1]]}, "T = "),
    ("phase_type", {"alpha": [1, 0], "T": [[-1, 1], [1, -1]]}, "absorption"),
    ("phase_type", {"alpha": "x", "T": [[-1]]}, "alpha = 'x'"),
    ("phase_type", {"alpha": ["1"], "T": [[-1]]}, "alpha = ['1']"),
    ("phase_type", {"alpha": [1], "T": [[-1e200]]}, "rates must be from 1e-100 to 1e+100"),
    ("phase_type", {"alpha": [1, 0], "T": [[-1e9, 1e9], [0, -1]]}, "is 1e+09; must be at most"),
]


@pytest.mark.parametrize(("name", "parameters", "message"), BAD)
def test_bad_parameters(name: str, parameters: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        ms.size_law(name, **parameters)


NO_NUMBERS = [
    np.array([2.0]),
    np.bool_(True),
    True,
    "2",
    math.nan,
    math.inf,
    None,
    [2],
    10**400,
    2j,
]


@pytest.mark.parametrize("name", sorted({law.name for law in laws()}))
@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: f"{value!r:.9}")
def test_what_is_no_number(name: str, value: object) -> None:
    law = next(law for law in laws() if law.name == name)
    for key in {"mean", "shape", "scv"} & set(law.parameter_names()):
        if value is None and law.name in {"empirical", "phase_type"}:
            continue  # It leaves the mean as it is.
        with pytest.raises(ValueError, match=f"^{key} = .*: must be an? (number from|integer >=) "):
            ms.size_law(name, **law.parameters | {key: value})


EXTREME = [
    *({"name": "erlang", "shape": shape} for shape in (1, np.int64(1000))),
    *({"name": "hyperexponential", "scv": scv} for scv in (1, 1 + 1e-15, 1e6)),
    *({"name": "lognormal", "scv": scv} for scv in (1e-12, np.float32(0.5), np.array(0.5), 1e12)),
    *({"name": "weibull", "shape": shape} for shape in (0.05, 1e4)),
    *({"name": "pareto", "shape": shape} for shape in (1.1, 2.0000001, 1e6)),
    *({"name": "empirical", "values": values} for values in ([0, 1e-300, 1e308], [5e-324, 1e-322])),
    *({"name": "phase_type", "alpha": [1], "T": [[-rate]]} for rate in (1e-100, 1e100)),
    {"name": "phase_type", "alpha": [1, 0], "T": [[-100, 100], [0, -1]]},
    {"name": "exponential"},
    {"name": "deterministic"},
    {"name": "power_law"},
]


@pytest.mark.parametrize("mean", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize("parameters", EXTREME, ids=str)
def test_extreme_parameters(parameters: dict[str, Any], mean: float) -> None:
    """Far tails are right to 1e-5 only, which is what cancellation leaves of them."""
    law = ms.size_law(**parameters, mean=mean)
    x = np.concatenate([[-1.0, 0.0], mean * np.geomspace(1e-12, 1e12, 200), [1e300, math.inf]])
    part = np.array([0.0, 1e-12, 0.5, 0.999, 1 - 1e-12, math.nextafter(1, 0)])
    for cdf, quantile in ((law.cdf, law.quantile), (law.residual_cdf, law.residual_quantile)):
        assert (np.diff(cdf(x)) >= -1e-5).all()
        assert cdf(x)[[0, -2, -1]] == pytest.approx([0, 1, 1])
        at = quantile(part)
        assert np.isfinite(at).all()
        assert (np.diff(at) >= 0).all()
        assert (cdf(at) >= part - 1e-5).all()
    rng = np.random.default_rng(SEED)
    for draw in (law.sample, law.sample_length_biased, law.sample_residual):
        sizes = draw(rng, 1000)
        assert np.isfinite(sizes).all()
        assert (sizes >= 0).all()
    assert law.scv >= 0
    assert law.variance >= 0


def test_probabilities_are_checked() -> None:
    with pytest.raises(ValueError, match="must lie in"):
        ms.size_law("hyperexponential", scv=2).quantile(1.0)
