"""The command for capacity planning."""

import math
from typing import Any, get_args

import click

from manyserver.commands.base import say
from manyserver.commands.values import POOLS, read_pool, read_values
from manyserver.variables import MeanName

__all__ = ["plan"]


@click.command()
@POOLS
@click.option("--policy", "policy_name", required=True, help="Name of the policy.")
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="A parameter of it, as d=2."
)
@click.option("--at-most", type=float, required=True, help="The largest value that is accepted.")
@click.option(
    "--quantity",
    type=click.Choice(get_args(MeanName)),
    default="sojourn_mean",
    show_default=True,
    help="The variable that must not be larger.",
)
@click.option("--servers", type=int, help="Number of servers; then the highest load is found.")
@click.option(
    "--jobs", type=float, help="Jobs per unit of time; then the fewest servers are found."
)
@click.option(
    "--type",
    "types",
    multiple=True,
    metavar="SPEED,COST",
    help="A type of servers, instead of --pool; with --jobs the cheapest mix is found.",
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Its own.")
def plan(
    pools: tuple[str, ...],
    policy_name: str,
    settings: tuple[str, ...],
    at_most: float,
    quantity: str,
    servers: int | None,
    jobs: float | None,
    types: tuple[str, ...],
    seed: int,
) -> None:
    """Find the highest load, the fewest servers, or the cheapest mix that meets a target.

    Without --servers and --jobs it is the highest load in the limit of many servers. For example:
    manyserver plan --policy sq --set d=2 --at-most 1.5 --jobs 40
    """
    from manyserver.policies import Policy, policy
    from manyserver.sizing import Target, cheapest_mix, fewest_servers, highest_load

    try:
        target = Target(quantity, at_most)
        parameters = read_values("set", settings)

        def chosen(count: int) -> Policy:
            # A list stands for one number for each pool, which mixes have more or fewer of.
            told = {k: v[:count] if isinstance(v, list) else v for k, v in parameters.items()}
            return policy(policy_name, **told)

        if jobs is not None and servers is not None:
            raise ValueError("jobs, servers: give one of them")
        if types:
            if jobs is None:
                raise ValueError("type: needs --jobs")
            speeds, costs = zip(*map(_type, types), strict=True)
            _tell_mix(cheapest_mix(speeds, costs, chosen, target, jobs, seed=seed), speeds, target)
            return
        made = [read_pool(text) for text in pools]
        if jobs is not None:
            found = fewest_servers(made, chosen(len(made)), target, jobs, seed=seed)
        else:
            found = highest_load(made, chosen(len(made)), target, servers, seed=seed)
    except (ValueError, RuntimeError) as error:
        raise click.ClickException(str(error)) from error
    if math.isnan(found.value):
        raise click.ClickException(f"{quantity} <= {at_most:g}: no load meets this target")
    reached = f"{quantity} = {_with_width(found.reached, found.reached_half_width)}"
    if jobs is None:
        say(f"highest load: {_with_width(found.value, found.half_width)} ({reached})")
    else:
        sure = f", {found.value + found.half_width:.0f} to be sure" if found.half_width else ""
        say(f"fewest servers: {found.value:.0f}{sure} ({reached})")


def _type(text: str) -> tuple[str, float]:
    speed, _, cost = text.partition(",")
    try:
        return speed.strip(), float(cost)
    except ValueError:
        raise ValueError(f"type = {text!r}: must be SPEED,COST") from None


def _tell_mix(mix: Any, speeds: tuple[str, ...], target: Any) -> None:
    if mix is None:
        raise click.ClickException(
            f"{target.quantity} <= {target.at_most:g}: no mix meets this target"
        )
    parts = [
        f"{float(share) * mix.n_servers:.0f} of speed {speed}"
        for share, speed in zip(mix.fractions, speeds, strict=True)
        if share
    ]
    reached = f"{target.quantity} = {_with_width(mix.reached, mix.reached_half_width)}"
    say(f"cheapest mix: {' and '.join(parts)}, cost {mix.cost:g} ({reached})")


def _with_width(value: float, half_width: float) -> str:
    return f"{value:.6g}" if not half_width else f"{value:.6g} +- {half_width:.2g}"
