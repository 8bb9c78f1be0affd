"""How servers work: the law of the sizes, and the discipline."""

from manyserver.sizes.base import SizeLaw
from manyserver.sizes.exponential import Exponential

__all__ = ["DISCIPLINES", "checked_service"]

DISCIPLINES = {"ps": "processor sharing", "fcfs": "first come, first served"}

ROUNDING = 1e-9


def checked_service(law: object, discipline: object) -> tuple[SizeLaw, str]:
    """Check the law of the sizes and the discipline, and fill in the defaults.

    Parameters
    ----------
    law : SizeLaw or None
        Of mean one; exponential if None.
    discipline : {"ps", "fcfs"} or None
        Processor sharing if None.

    Raises
    ------
    ValueError
        If one is something else.

    Examples
    --------
    >>> checked_service(None, None)
    (Exponential(mean=1.0), 'ps')
    """
    if law is None:
        law = Exponential()
    if not isinstance(law, SizeLaw):
        raise ValueError(f"sizes = {law!r}: must be a law from manyserver.sizes, or None")
    if abs(law.mean - 1) > ROUNDING:
        raise ValueError(
            f"sizes: have mean {law.mean:.6g}; must have mean 1, the unit of time (mean=1 scales "
            "them)"
        )
    if discipline is None:
        discipline = "ps"
    if not isinstance(discipline, str) or discipline not in DISCIPLINES:
        raise ValueError(f"discipline = {discipline!r}: must be one of {', '.join(DISCIPLINES)}")
    return law, discipline
