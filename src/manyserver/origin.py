"""What a result was computed for and by which version, as attributes that a file keeps."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr

    from manyserver.registry import Named

__all__ = ["ORIGIN", "VERSION", "with_origin", "with_version"]

VERSION = "manyserver_version"
ORIGIN = ("system", "policy", "sizes", "discipline", "seed", "options", VERSION)
"""Names of the attributes. The record of a point leaves them out: its parameters say the same."""


def with_version(result: xr.Dataset) -> xr.Dataset:
    """Say in the attributes of a result which version of the package computed it."""
    return result.assign_attrs({VERSION: _version()})


def _version() -> str:
    # Not imported: the fingerprint of a point's code would change with every version.
    return str(sys.modules["manyserver"].__version__)


def with_origin(
    result: xr.Dataset,
    system: object,
    policy: object,
    *,
    sizes: object = None,
    discipline: Named | None = None,
    seed: object = None,
    **options: object,
) -> xr.Dataset:
    """Say in the attributes of a result what it was computed for.

    Parameters
    ----------
    result : xarray.Dataset
    system, policy : System, Policy, or sequences of them
    sizes : SizeLaw, optional
        None where job sizes are exponential; the digest of measured ones is told too.
    discipline : Discipline, optional
        None where it makes no difference.
    seed : int or sequence of int, optional
        None where nothing is random.
    **options
        Further arguments on which the result depends; None for those not given.

    Returns
    -------
    xarray.Dataset
        With the attributes :data:`ORIGIN`, as text; those that have no meaning are left out.
    """
    digest = getattr(sizes, "digest", None)
    measured = "" if digest is None else f", SHA-256 {digest}"
    given = [f"{name}={value!r}" for name, value in options.items() if value is not None]
    told = {
        "system": repr(system),
        "policy": repr(policy),
        "sizes": "exponential" if sizes is None else f"{sizes!r}{measured}",
        "discipline": discipline and discipline.name,
        "seed": None if seed is None else str(seed),
        "options": ", ".join(given) or None,
        VERSION: _version(),
    }
    known = {name: text for name, text in told.items() if text is not None}
    return result.assign_attrs(known)
