"""Texts of a study that could not be drawn."""

import re
from collections.abc import Iterator
from functools import cache

from manyserver.validation import shown

__all__ = ["unfit_texts"]

NEVER_DRAWN = ("title", "description")
"""Keys of a study, not of a figure."""


def unfit_texts(content: object, key: str = "") -> Iterator[tuple[str, str]]:
    r"""Yield the key of every text that is no mathtext, and a line that says so.

    Parameters
    ----------
    content : object
        Plain values, as YAML gave them; it has refused what cannot be printed.
    key : str, optional
        Where they stand.

    Examples
    --------
    >>> for _, line in unfit_texts({"policies": [{"label": r"$\frac{1$"}]}):
    ...     print(line)
    policies[0].label = '$\\frac{1$': is not mathtext; between two $, must be formulas as TeX
    writes them, and a dollar sign must be written \$
    """
    if isinstance(content, dict):
        for name, value in content.items():
            inner = f"{key}.{name}".lstrip(".")
            if not _can_be_drawn(name, inner):
                yield inner, _reason(inner)
            yield from unfit_texts(value, inner)
    elif isinstance(content, list):
        for i, value in enumerate(content):
            yield from unfit_texts(value, f"{key}[{i}]")
    elif isinstance(content, str) and not _can_be_drawn(content, key):
        yield key, _reason(f"{key} = {shown(content)}")


def _reason(text: str) -> str:
    return (
        f"{text}: is not mathtext; between two $, must be formulas as TeX writes them, "
        r"and a dollar sign must be written \$"
    )


def _can_be_drawn(text: str, key: str) -> bool:
    return "$" not in text or key in NEVER_DRAWN or _is_mathtext(text)


@cache
def _is_mathtext(text: str) -> bool:
    if len(re.findall(r"(?<!\\)\$", text)) % 2:
        return False
    # Imported for texts with formulas alone, as it takes longer than all else that is checked.
    from matplotlib.mathtext import MathTextParser

    try:
        MathTextParser("path").parse(text)
    except (ValueError, RuntimeError):
        return False
    return True
