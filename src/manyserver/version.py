"""The version of the package, known also where it runs from its source."""

__all__ = ["__version__"]

__version__ = "0.1.0"
