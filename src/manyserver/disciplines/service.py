"""How servers work: the law of the sizes, and the discipline."""

from manyserver.disciplines import Discipline, discipline
from manyserver.disciplines.fcfs import FirstComeFirstServed
from manyserver.disciplines.ps import ProcessorSharing
from manyserver.policies import Policy
from manyserver.sizes.base import SizeLaw
from manyserver.sizes.exponential import Exponential

__all__ = ["checked_discipline", "checked_service"]

ROUNDING = 1e-9


def checked_service(
    law: object, order: object, policy: Policy | None = None
) -> tuple[SizeLaw, Discipline]:
    """Check the law of the sizes and the discipline, and fill in the defaults.

    Parameters
    ----------
    law : SizeLaw or None
        Of mean one; exponential if None.
    order : str or Discipline or None
        If None, first come, first served for a policy that is simulated job by job, else processor
        sharing.
    policy : Policy, optional
        That jobs are sent by.

    Raises
    ------
    ValueError
        If one is something else, or jobs that wait in one queue are not served in their order.

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
    if order is None:
        in_order = policy is not None and policy.follows_jobs
        return law, FirstComeFirstServed() if in_order else ProcessorSharing()
    known = checked_discipline(order)
    if policy is not None and policy.central and not known.waiting:
        raise ValueError(
            f"discipline = {known.name!r}: must be 'fcfs' with policy {policy.name}, whose jobs "
            "wait in one queue"
        )
    return law, known


def checked_discipline(order: object) -> Discipline:
    """Return a discipline, given itself or its name."""
    return order if isinstance(order, Discipline) else discipline(order)  # type: ignore[arg-type]
