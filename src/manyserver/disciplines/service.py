"""How servers work: the law of the sizes, and the discipline."""

from manyserver.disciplines import Discipline, discipline
from manyserver.disciplines.ps import ProcessorSharing
from manyserver.sizes.base import SizeLaw
from manyserver.sizes.exponential import Exponential

__all__ = ["checked_discipline", "checked_service"]

ROUNDING = 1e-9


def checked_service(law: object, order: object) -> tuple[SizeLaw, Discipline]:
    """Check the law of the sizes and the discipline, and fill in the defaults.

    Parameters
    ----------
    law : SizeLaw or None
        Of mean one; exponential if None.
    order : str or Discipline or None
        Processor sharing if None.

    Raises
    ------
    ValueError
        If one is something else.

    Examples
    --------
    >>> checked_service(None, None)
    (Exponential(mean=1.0), ProcessorSharing())
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
    return law, ProcessorSharing() if order is None else checked_discipline(order)


def checked_discipline(order: object) -> Discipline:
    """Return a discipline, given itself or its name."""
    return order if isinstance(order, Discipline) else discipline(order)  # type: ignore[arg-type]
