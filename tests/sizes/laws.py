"""Instances of every law in the registry, for tests that walk over all of them."""

import manyserver as ms
from manyserver.sizes import SizeLaw, names

_PARAMETERS: dict[str, list[dict[str, object]]] = {
    "deterministic": [{}],
    "empirical": [{"values": [0.0, 1.0, 1.0, 2.0, 7.5], "mean": 1}],
    "erlang": [{"shape": 3}],
    "exponential": [{}],
    "hyperexponential": [{"scv": 1}, {"scv": 9}],
    "lognormal": [{"scv": 3}],
    "pareto": [{"shape": 1.5}, {"shape": 3.5}],
    "phase_type": [
        {"alpha": [1, 0], "T": [[-2, 0], [0, -1]], "mean": 1},
        {"alpha": [0.3, 0.7, 0], "T": [[-1, 0.5, 0.5], [0.2, -3, 0], [0, 0, -0.4]], "mean": 1},
    ],
    "power_law": [{}],
    "weibull": [{"shape": 0.6}, {"shape": 2}],
}


def laws() -> list[SizeLaw]:
    """Every law, with mean one."""
    missing = set(names()) - set(_PARAMETERS)
    assert not missing, f"say with which parameters {missing} are tested"
    return [ms.size_law(name, **parameters) for name in names() for parameters in _PARAMETERS[name]]
