"""Methods that know nothing of a policy say so, and all others compute it."""

import pytest
from tests.registry import EQUAL, followed_policies

import manyserver as ms
from manyserver import methods
from manyserver.disciplines import Discipline, discipline
from manyserver.methods.base import NOT_KNOWN, Draws
from manyserver.methods.dispatching import DispatchingProblem
from manyserver.policies import Policy

KNOWN = {
    "exact": {"round_robin", "central_queue"},
    "mean_field": {"round_robin", "least_work", "central_queue"},
    "refined_mean_field": set(),
    "simulation": {"round_robin", "weighted_round_robin", "least_work", "central_queue"},
}


@pytest.mark.parametrize("policy", followed_policies(), ids=str)
@pytest.mark.parametrize("name", KNOWN)
def test_what_is_not_known_has_that_status(name: str, policy: Policy) -> None:
    method = methods.load(name)
    system = ms.System(0.4, EQUAL, None if name == "mean_field" else 8)
    options = {"horizon": 50.0} if name == "simulation" else {}
    problem = DispatchingProblem(system, policy)
    assert method.skip_reason(problem, method.options_class(**options)) == ""
    result = method.compute(problem, method.options_class(**options), Draws())
    known = policy.name in KNOWN[name]
    assert ("sojourn_mean" in result) == known
    assert (result.attrs.get("status") == NOT_KNOWN) != known
    assert known or policy.name in result.attrs["reason"]


@pytest.mark.parametrize("name", ["mean_field", "simulation"])
def test_one_queue_is_served_in_order(name: str) -> None:
    def check(order: Discipline) -> None:
        method = methods.load(name)
        sizes = ms.size_law("exponential")
        problem = DispatchingProblem(
            ms.System(0.4, EQUAL, 8), ms.policy("central_queue"), sizes, order
        )
        method.check(problem, method.options_class())

    check(discipline("fcfs"))
    with pytest.raises(ValueError, match="discipline = 'ps': must be 'fcfs'"):
        check(discipline("ps"))
