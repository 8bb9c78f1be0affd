"""The report: one page of HTML with all that is built, which needs nothing but itself.

The page is a template of Jinja2 in ``page/``, with its style and script; this package says what is
in it.
"""

from manyserver.report.build import digest, report

__all__ = ["digest", "report"]
