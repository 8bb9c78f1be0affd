"""Options that several commands have, and how their values are read."""

import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from manyserver.model import Pool

__all__ = ["POOLS", "read_pool", "read_values"]

POOLS = click.option(
    "--pool",
    "pools",
    multiple=True,
    default=["1,1"],
    show_default=True,
    metavar="FRACTION,SPEED[,BUFFER]",
    help="A pool of servers, such as 1/2,2/3; once for each.",
)


def read_pool(text: str) -> "Pool":
    """Read ``FRACTION,SPEED`` or ``FRACTION,SPEED,BUFFER``."""
    from manyserver.model import Pool

    parts = text.split(",")
    if len(parts) not in (2, 3) or (len(parts) == 3 and not parts[2].strip().isdigit()):
        raise ValueError(f"pool = {text!r}: must be FRACTION,SPEED or FRACTION,SPEED,BUFFER")
    buffer = int(parts[2]) if len(parts) == 3 else None
    return Pool(parts[0].strip(), parts[1].strip(), buffer=buffer)


def read_values(option: str, pairs: tuple[str, ...]) -> dict[str, Any]:
    """Read ``NAME=VALUE``, with values as in JSON; what is not is text."""
    found = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ValueError(f"{option} = {pair!r}: must be NAME=VALUE")
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return found
