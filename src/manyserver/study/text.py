"""Texts of a study that could not be written into a file, or not be drawn."""

import re
from collections.abc import Iterator
from functools import cache

__all__ = ["unfit_texts"]

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""What neither NetCDF, PDF nor a terminal takes; a tab and an end of line are no harm."""
NEVER_DRAWN = ("title", "description")
"""Keys of a study, not of a figure."""


def unfit_texts(content: object, key: str = "") -> Iterator[str]:
    r"""Yield the key of every text that cannot be used, with the reason.

    Parameters
    ----------
    content : object
        Plain values, as YAML gave them.
    key : str, optional
        Where they stand.

    Examples
    --------
    >>> for line in unfit_texts({"title": "a\0", "policies": [{"label": r"$\frac{1$"}]}):
    ...     print(line)
    title = 'a\x00': must not hold the control character '\x00'
    policies[0].label = '$\\frac{1$': is not mathtext; between two $, must be formulas as TeX
    writes them, and a dollar sign must be written \$
    """
    if isinstance(content, dict):
        for name, value in content.items():
            shown = _short(name) if isinstance(name, str) and not name.isprintable() else name
            inner = f"{key}.{shown}".lstrip(".")
            if isinstance(name, str):
                yield from _unfit(name, inner, f"{inner}: ")
            yield from unfit_texts(value, inner)
    elif isinstance(content, list):
        for i, value in enumerate(content):
            yield from unfit_texts(value, f"{key}[{i}]")
    elif isinstance(content, str):
        yield from _unfit(content, key, f"{key} = {_short(content)}: ")


def _unfit(text: str, key: str, prefix: str) -> Iterator[str]:
    found = CONTROL.search(text)
    if found:
        yield f"{prefix}must not hold the control character {found[0]!r}"
    elif "$" in text and key not in NEVER_DRAWN and not _is_mathtext(text):
        yield (
            f"{prefix}is not mathtext; between two $, must be formulas as TeX writes them, "
            r"and a dollar sign must be written \$"
        )


def _short(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


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
