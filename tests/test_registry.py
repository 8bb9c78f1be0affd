"""What a registry finds, and what it refuses."""

from importlib.metadata import EntryPoint, EntryPoints

import pytest

import manyserver as ms
from manyserver.policies import Policy
from manyserver.registry import PluginError, Registry


class Mine(ms.policies.JSQ):  # type: ignore[misc]
    name = "mine"


@pytest.fixture
def registry(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Registry[Policy]:
    """The policies, and those that another package names."""

    def entry_points(group: str) -> EntryPoints:
        assert group == "manyserver.policies"
        return EntryPoints(EntryPoint(name, value, group) for name, value in request.param)

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    return Registry("policy", Policy, "manyserver.policies")


@pytest.mark.parametrize("registry", [[("mine", f"{__name__}:Mine")]], indirect=True)
def test_an_entry_point_is_found(registry: Registry[Policy]) -> None:
    assert set(registry.names()) == {*ms.policies.names(), "mine"}
    assert registry.find("mine") is Mine
    assert registry.make("mine", ties="fastest") == Mine(ties="fastest")


@pytest.mark.parametrize(
    ("registry", "message"),
    [
        ([("mine", "no_such_module:Mine")], "cannot import no_such_module:Mine: ModuleNotFound"),
        ([("mine", f"{__name__}:Other")], "cannot import .*AttributeError"),
        ([("mine", "fractions:Fraction")], "must be a subclass of manyserver.policies.base.Policy"),
        ([("mine", f"{__name__}:registry")], "must be a subclass of manyserver.policies.base"),
        ([("other", f"{__name__}:Mine")], "must have name = 'other'"),
        ([("jsq", f"{__name__}:Mine")], "must have another name; manyserver.policies.jsq has this"),
        ([("scheme1", f"{__name__}:Mine")], "must have another name; manyserver.policies.schemes"),
        ([("mine", f"{__name__}:Mine"), ("mine", "a:B")], "the policy 'mine': .* have one of this"),
    ],
    indirect=["registry"],
)
def test_an_entry_point_that_cannot_be_used(registry: Registry[Policy], message: str) -> None:
    with pytest.raises(PluginError, match=message):
        for name in registry.names():
            registry.find(name)


def test_classes_are_exported_by_their_names() -> None:
    for package, find in ((ms.policies, ms.policies.policy_class), (ms.sizes, ms.sizes.size_class)):
        for name in package.names():
            found = find(name)
            assert getattr(package, found.__name__) is found
    with pytest.raises(AttributeError, match="no attribute 'Scheme3'"):
        _ = ms.policies.Scheme3


def test_a_name_that_two_files_have(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry("policy", Policy, "manyserver.policies")
    other = type("Other", (Mine,), {"name": "sq", "__module__": "manyserver.policies.jsq"})
    monkeypatch.setattr("manyserver.policies.jsq.Other", other, raising=False)
    with pytest.raises(PluginError, match=r"the policy 'sq': \S+\.jsq and \S+\.sq have one of"):
        registry.names()
