"""Where an arrival goes, given how many jobs the servers hold."""

from manyserver.joining.law import JoiningLaw

__all__ = ["JoiningLaw"]
