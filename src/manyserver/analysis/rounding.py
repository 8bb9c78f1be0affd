"""Numbers as papers write them."""

__all__ = ["with_error"]

MOST_DIGITS = 7
"""Decimals written of a value whose error is smaller."""


def with_error(value: float, standard_error: float) -> str:
    """Write a value with the error of its last digit in parentheses.

    Examples
    --------
    >>> with_error(7.46413, 0.0012), with_error(2.0, 1e-15)
    ('7.4641(12)', '2.0000000')
    """
    if standard_error < 0.5 * 10.0**-MOST_DIGITS:
        return f"{value:.{MOST_DIGITS}f}"
    power = int(f"{standard_error:.1e}".split("e")[1])
    digits = min(max(0, 1 - power), MOST_DIGITS)
    return f"{value:.{digits}f}({standard_error * 10**digits:.0f})"
