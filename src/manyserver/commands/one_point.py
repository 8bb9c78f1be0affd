"""The command that computes one point, without a study."""

import json
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from manyserver.commands.base import say
from manyserver.commands.values import POOLS, read_pool, read_values

if TYPE_CHECKING:
    import xarray as xr

    from manyserver.model import System

__all__ = ["point"]

SHOWN = 5
"""Entries of an array that are shown."""


@click.command()
@POOLS
@click.option("--load", type=float, help="Arrival rate over the capacity.")
@click.option("--arrival-rate", type=float, help="Arrival rate per server, instead of --load.")
@click.option("--servers", type=int, help="Number of servers; their limit if left out.")
@click.option("--policy", "policy_name", required=True, help="Name of the policy.")
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="A parameter of it, as d=2."
)
@click.option("--sizes", "law", help="Law of the job sizes; with it every job is followed.")
@click.option("--size", "shape", multiple=True, metavar="NAME=VALUE", help="A parameter of it.")
@click.option("--discipline", help="How servers work on their jobs, such as fcfs.")
@click.option("--method", "method_name", help="By default simulation, or in the limit mean_field.")
@click.option(
    "--option", "options", multiple=True, metavar="NAME=VALUE", help="Of the method, as in a study."
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Its own.")
@click.option("--json", "as_json", is_flag=True, help="Print all variables as JSON.")
def point(
    pools: tuple[str, ...],
    load: float | None,
    arrival_rate: float | None,
    servers: int | None,
    policy_name: str,
    settings: tuple[str, ...],
    law: str | None,
    shape: tuple[str, ...],
    discipline: str | None,
    method_name: str | None,
    options: tuple[str, ...],
    seed: int,
    as_json: bool,
) -> None:
    """Compute one point by any method that applies, and print it.

    For example: manyserver point --pool 1/2,2/3 --pool 1/2,4/3 --load 0.9 --servers 100 --policy
    scheme1 --set d=[2,2]
    """
    from manyserver import methods
    from manyserver.methods.base import Draws
    from manyserver.methods.dispatching import DispatchingProblem
    from manyserver.policies import policy
    from manyserver.registry import DEFAULT_MODEL

    try:
        system = _system(pools, load, arrival_rate, servers)
        chosen = policy(policy_name, **read_values("set", settings))
        sizes, order = _service(law, shape, discipline)
        problem = DispatchingProblem(system, chosen, sizes, order)
        name = method_name or ("mean_field" if servers is None else "simulation")
        method = methods.load(name)
        if method.model != DEFAULT_MODEL:
            raise ValueError(f"method = {name!r}: is for studies of the model {method.model}")
        if not method.applies(problem):
            where = "the limit" if servers is None else "a number of servers"
            raise ValueError(f"method = {name!r}: does not apply to {where}")
        if sizes is not None and not method.takes_sizes:
            raise ValueError(f"method = {name!r}: knows exponential job sizes only")
        asked = method.options_class(**read_values("option", options))
        method.check(problem, asked)
        if reason := method.skip_reason(problem, asked):
            raise ValueError(f"method = {name!r}: cannot compute this point: {reason}")
        result = method.compute(problem, asked, Draws(seed=seed))
    except (ValueError, RuntimeError) as error:
        raise click.ClickException(str(error)) from error
    if "status" in result.attrs:
        told = (result.attrs["status"], result.attrs.get("reason", ""))
        raise click.ClickException(": ".join(filter(None, told)))
    say(_as_json(result) if as_json else _as_table(result))


def _system(
    pools: tuple[str, ...], load: float | None, arrival_rate: float | None, servers: int | None
) -> "System":
    from manyserver.model import System, exact_capacity

    made = [read_pool(text) for text in pools]
    if (load is None) == (arrival_rate is None):
        raise ValueError("load, arrival-rate: give one of them")
    if load is not None:
        # Exact, as a load in a study is.
        arrival_rate = float(Fraction(repr(load)) * exact_capacity(made))
    assert arrival_rate is not None
    return System(arrival_rate, made, n_servers=servers)


def _service(law: str | None, shape: tuple[str, ...], discipline: str | None) -> tuple[Any, Any]:
    """Return the law of the sizes and the discipline, both or none."""
    from manyserver.disciplines.service import checked_service
    from manyserver.sizes import size_law

    if law is None and shape:
        raise ValueError("size: needs --sizes")
    if law is None and discipline is None:
        return None, None
    sizes = None if law is None else size_law(law, **read_values("size", shape))
    return checked_service(sizes, discipline)


def _as_json(result: "xr.Dataset") -> str:
    values = {str(name): _plain(result[name].values.tolist()) for name in result.variables}
    return json.dumps({"attributes": {k: str(v) for k, v in result.attrs.items()}, **values})


def _plain(value: Any) -> Any:
    """Replace what JSON has no word for by null."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _as_table(result: "xr.Dataset") -> str:
    """List values with half-widths, units and meaning: numbers, then arrays, then diagnostics."""
    from manyserver.schema import HALF_WIDTH, Purpose
    from manyserver.variables import SCHEMA

    names = [str(name) for name in result.data_vars]
    values = sorted(SCHEMA.of_purpose(Purpose.VALUE, names), key=lambda name: result[name].ndim)
    others = SCHEMA.of_purpose(Purpose.RELATIVE_ERROR, names)
    others += SCHEMA.of_purpose(Purpose.DIAGNOSTIC, names)
    rows = []
    for name in [*values, *others]:
        text = _numbers(result[name].values)
        width = name + HALF_WIDTH
        if width in result:
            text += f" +- {_numbers(result[width].values, digits=2)}"
        rows.append(
            (name, text, result[name].attrs.get("units", ""), SCHEMA.lookup(name).long_name)
        )
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        f"{name:{widths[0]}}  {text:{widths[1]}}  {units:{widths[2]}}  {meaning}"
        for name, text, units, meaning in rows
    )


def _numbers(values: Any, digits: int = 6) -> str:
    """Write a number, or the first ones of an array."""
    flat = values.ravel().tolist()
    shown = ", ".join(f"{value:.{digits}g}" for value in flat[:SHOWN])
    if values.ndim == 0:
        return shown
    return f"[{shown}{', ...' if len(flat) > SHOWN else ''}]"
