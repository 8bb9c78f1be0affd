"""What is asked of a simulation of jobs, checked."""

from manyserver.sizes import SizeLaw
from manyserver.sizes.service import checked_service

__all__ = ["DEFAULT_PRECISION", "checked_jobs"]

DEFAULT_PRECISION = 0.005
"""Precision if neither a precision nor a horizon is asked for."""


def checked_jobs(sizes: object, discipline: object, moments: bool) -> tuple[SizeLaw, str]:
    """Check the law of the sizes and the discipline, and what goes with them.

    Raises
    ------
    ValueError
        If one is out of its range, or does not go with the others; says what is allowed.
    """
    law, discipline = checked_service(sizes, discipline)
    if moments:
        raise ValueError("moments = True: must be False where jobs are followed")
    return law, discipline
