"""What messages show of a file, which may be none of sizes.

That is little, and nothing that controls a terminal.
"""

from collections.abc import Sequence

__all__ = ["one_of", "shortened", "shown"]

MOST_NAMES = 12
LONGEST = 24


def shown(text: str) -> str:
    r"""Return a text, quoted if a terminal might not only print it.

    Examples
    --------
    >>> shown("jobs.csv"), shown("\x1b[2J")
    ('jobs.csv', "'\\x1b[2J'")
    """
    return text if text.isprintable() else repr(text)


def shortened(text: str) -> str:
    """Return the beginning of a text."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def one_of(where: str, column: object, names: Sequence[str]) -> str:
    """Return the column that is asked for, or the only one.

    Raises
    ------
    ValueError
        If there is none, or more than one.
    """
    if column is None and len(names) == 1:
        return names[0]
    if isinstance(column, str) and names.count(column) == 1:
        return column
    if isinstance(column, str) and column in names:
        raise ValueError(f"column = {column!r}: {where} has {names.count(column)} of this name")
    some = [shown(shortened(name)) for name in names[:MOST_NAMES]]
    more = [f"{len(names) - MOST_NAMES} more"] if len(names) > MOST_NAMES else []
    allowed = ", ".join([*some, *more]) or "none"
    raise ValueError(f"column = {column!r}: must be one of those of {where}: {allowed}")
