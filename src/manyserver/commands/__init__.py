"""The commands ``manyserver VERB``; each is one call into the package."""

from manyserver.commands import build, inspect

__all__ = ["COMMANDS"]

COMMANDS = [
    *(getattr(build, name) for name in build.__all__),
    *(getattr(inspect, name) for name in inspect.__all__),
]
