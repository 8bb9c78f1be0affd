"""Figures and fits ask for methods by their roles."""

import pytest
import xarray as xr

from manyserver import methods
from manyserver.analysis.curves import method_of, methods_of, required_method, required_methods
from manyserver.methods import METHOD, ROLE, Role

NAMES = ["mean_field", "of_a_package", "simulation"]


def cube(**roles: str) -> xr.Dataset:
    found = xr.Dataset(coords={METHOD: NAMES})
    return found.assign_coords({ROLE: (METHOD, list(roles.values()))}) if roles else found


def test_a_cube_tells_the_roles_of_its_methods() -> None:
    told = cube(mean_field="limit", of_a_package="simulation", simulation="simulation")
    assert methods_of(told, Role.SIMULATION) == ["of_a_package", "simulation"]
    assert methods_of(told, "simulation", Role.SIMULATION) == ["simulation", "of_a_package"]
    assert method_of(told, Role.SIMULATION) == "of_a_package"
    assert method_of(told.isel({METHOD: 2}), Role.SIMULATION) == "simulation"
    assert method_of(told, Role.EXACT) == method_of(told, "exact") == ""


def test_without_roles_in_a_cube_they_are_those_of_the_classes() -> None:
    assert methods_of(cube(), Role.SIMULATION, Role.LIMIT) == ["simulation", "mean_field"]


def test_methods_that_are_required() -> None:
    assert required_methods(cube(), "of_a_package", Role.LIMIT) == ["of_a_package", "mean_field"]
    assert required_method(cube(), Role.LIMIT) == "mean_field"
    with pytest.raises(ValueError, match=r"method = 'exact': is not in the cube; must be one of"):
        required_methods(cube(), "exact")
    with pytest.raises(ValueError, match="none in the cube has the role exact; it has mean_field"):
        required_methods(cube(), Role.EXACT)


@pytest.mark.parametrize("name", methods.names())
def test_every_method_has_a_role_that_fits_the_number_of_servers(name: str) -> None:
    method = methods.load(name)
    assert method.role in Role
    assert method.random == (method.role is Role.SIMULATION)
    assert name in methods.names(method.model, method.role)
