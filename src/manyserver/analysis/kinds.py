"""What kinds of figures and kinds of fits have in common."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar, Generic, TypeVar, cast

from pydantic import BaseModel

from manyserver.analysis.supply import Supply
from manyserver.registry import DEFAULT_MODEL

__all__ = ["Kind"]

Options = TypeVar("Options", bound=BaseModel)


class Kind(ABC, Generic[Options]):
    """A kind of figure or fit.

    Attributes
    ----------
    name : str
        What studies call it.
    title : str
        What it shows or fits, in a line or two of Markdown.
    options_class : type
        A frozen pydantic model of its options, each with a default.
    model : str
        Name of the model whose cubes it reads.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    options_class: type[Options]
    model: ClassVar[str] = DEFAULT_MODEL

    def checked_options(self, options: BaseModel | Mapping[str, object] | None) -> Options:
        """Return options as they are, or made from a mapping; the defaults for None."""
        if options is None or isinstance(options, Mapping):
            return self.options_class(**(options or {}))
        return cast(Options, options)

    @abstractmethod
    def needs(self, study: Supply, options: Options) -> Iterator[str]:
        """Yield what a study lacks that it needs; see :mod:`manyserver.analysis.supply`."""
