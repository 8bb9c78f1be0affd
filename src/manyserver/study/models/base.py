"""What a model is: what a study can be about."""

from abc import ABC, abstractmethod
from typing import ClassVar, Generic, TypeVar

from manyserver.schema import Schema
from manyserver.study.config.base import StudyConfig
from manyserver.study.layout import Layout
from manyserver.validation import Mistakes

__all__ = ["Model"]

C = TypeVar("C", bound=StudyConfig)


class Model(ABC, Generic[C]):
    """What a study can be about; the key ``model`` of a study names it.

    Attributes
    ----------
    name : str
        What studies call it.
    title : str
        One line of plain words.
    axes : tuple of str
        Coordinates of a cube that say which curve of it was fitted, in the order of the table of
        fits; ``n_servers`` is one for all models.
    config_class : type
        The typed form of a study's file.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    axes: ClassVar[tuple[str, ...]]
    config_class: type[C]

    @abstractmethod
    def lay_out(self, config: C, mistakes: Mistakes) -> Layout:
        """Build the points of a study; what is wrong with it is added to the mistakes.

        Raises
        ------
        ConfigError
            If so much is wrong that they cannot be built.
        """

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """All variables that its methods return."""
