"""The models that a study can be about, found by discovery.

A model is one package here; the key ``model`` of a study names it. It has

``TITLE``
    one line of plain words;
``Config``
    the typed form of a study's file, a subclass of
    :class:`~manyserver.study.config.base.StudyConfig`;
``lay_out(config, mistakes)``
    the :class:`~manyserver.study.layout.Layout` of a configuration; what is wrong with it is
    added to the mistakes;
``lookup(name)``
    the description of a variable that its methods return.

Methods, kinds of figures and kinds of fits are for the model that their module names in
``MODEL``, and for the model ``dispatching`` if it names none.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, cast

from manyserver import discovery

if TYPE_CHECKING:
    from manyserver.study.config.base import StudyConfig
    from manyserver.study.layout import Layout
    from manyserver.validation import Mistakes
    from manyserver.variables import Variable

__all__ = ["Model", "load", "names"]


class Model(Protocol):
    """What every package in this one provides."""

    TITLE: str
    Config: "type[StudyConfig]"
    lay_out: "Callable[[Any, Mistakes], Layout]"
    lookup: "Callable[[str], Variable]"


def names() -> tuple[str, ...]:
    """Return the names of all models, sorted.

    Examples
    --------
    >>> names()
    ('dispatching', 'halfin_whitt')
    """
    return discovery.modules(__name__)


def load(name: str) -> Model:
    """Return the package of a model.

    Raises
    ------
    ValueError
        If there is no such model.
    """
    return cast(Model, discovery.load(__name__, name, "model"))
