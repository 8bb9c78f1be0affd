"""Limits with fluctuations: many servers, in heavy traffic."""

from manyserver.diffusion import halfin_whitt

__all__ = ["halfin_whitt"]
