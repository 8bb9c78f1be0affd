"""The findings of all claims, as a table and as a page of Markdown."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from manyserver.claims.base import Finding, Verdict

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "as_table", "counted", "markdown", "number_of", "place_of", "plus_minus"]

COLUMNS = (
    "name",
    "paper",
    "number",
    "stated",
    "statement",
    "verdict",
    "value",
    "half_width",
    "expected",
    "low",
    "high",
    "study",
    "cell",
    "numbers",
    "note",
    "provenance",
)
"""Columns of the table; `cell` is JSON."""
UNFELT = 1e-6
"""Half-widths that are a smaller part of their number are not written."""
MOST_DIGITS = 6
"""Digits after the point that are written."""


def as_table(findings: Iterable[Finding], provenance: Mapping[str, str]) -> "pd.DataFrame":
    """Return a row for every finding, with the :data:`COLUMNS`.

    Parameters
    ----------
    findings : iterable of Finding
    provenance : mapping of str to str
        What is told of the cube of each study; under the empty name, of findings without one.
    """
    import pandas as pd

    return pd.DataFrame([_row(one, provenance) for one in findings], columns=list(COLUMNS))


def counted(findings: Iterable[Finding]) -> str:
    """Say how many claims have which verdict.

    Examples
    --------
    >>> from manyserver import claims
    >>> counted([Finding(claims.load("unique_solution"), Verdict.NOT_COMPUTABLE)])
    '1 claim: 1 not computable'
    """
    counts = Counter(one.verdict for one in findings)
    told = ", ".join(f"{counts[one]} {one.value}" for one in Verdict if counts[one])
    return f"{counts.total()} claim{'' if counts.total() == 1 else 's'}: {told}"


def plus_minus(value: float, half_width: float = 0.0) -> str:
    """Write a number, with its half-width to two digits where that is felt.

    Examples
    --------
    >>> plus_minus(1.23456, 0.0123), plus_minus(1.23456), plus_minus(float("nan"))
    ('1.235 ± 0.012', '1.23456', '')
    >>> plus_minus(0.00012345, 3e-8), plus_minus(2e-19, 1e-31)
    ('0.00012345 ± 3e-08', '2e-19')
    """
    if not math.isfinite(value):
        return ""
    if not math.isfinite(half_width) or half_width <= UNFELT * abs(value):
        return f"{value:.6g}"
    digits = 1 - math.floor(math.log10(half_width))
    shown = f"{value:.{max(digits, 0)}f}" if digits <= MOST_DIGITS else f"{value:.6g}"
    return f"{shown} ± {half_width:.2g}"


def number_of(finding: Finding) -> str:
    """Write the number that decided, with its half-width; empty if there is none."""
    one = finding.evidence
    return "" if one is None else plus_minus(one.value, one.half_width)


def place_of(finding: Finding) -> str:
    """Write in words where the number was read."""
    one = finding.evidence
    if one is None:
        return ", ".join(finding.claim.studies)
    hidden = ("method_name", "method", "name", "load" if "arrival_rate" in one.cell else "")
    labels = [f"{k} = {_label(v)}" for k, v in one.cell.items() if k not in hidden]
    return f"{one.study}: {', '.join(labels)}"


def markdown(findings: Iterable[Finding]) -> str:
    """Return a page with a table for every paper."""
    findings = list(findings)
    lines = ["# Claims", "", f"{counted(findings)}.", ""]
    for paper in sorted({one.claim.paper for one in findings}):
        lines += [
            f"## arXiv:{paper}",
            "",
            "| statement | where | verdict | number | claimed | read at | note |",
            "|---|---|---|---|---|---|---|",
        ]
        for one in findings:
            if one.claim.paper == paper:
                expected = one.evidence.expected.replace("+-", "±") if one.evidence else ""
                cells = (
                    one.claim.statement,
                    one.claim.number + " (not stated)" * (not one.claim.stated),
                    one.verdict.value,
                    number_of(one),
                    expected,
                    place_of(one),
                    one.note,
                )
                lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _label(value: object) -> str:
    if isinstance(value, float):
        return "limit" if math.isinf(value) else f"{value:g}"
    return str(value)


def _row(finding: Finding, provenance: Mapping[str, str]) -> dict[str, Any]:
    claim, one = finding.claim, finding.evidence
    row: dict[str, Any] = {
        "name": claim.name,
        "paper": f"arXiv:{claim.paper}",
        "number": claim.number,
        "stated": claim.stated,
        "statement": claim.statement,
        "verdict": finding.verdict.value,
        "study": " ".join(claim.studies),
        "numbers": finding.numbers,
        "note": finding.note,
        "provenance": provenance[""],
    }
    if one is not None:
        row |= {
            "value": one.value,
            "half_width": one.half_width,
            "expected": one.expected,
            "low": one.low,
            "high": one.high,
            "study": one.study,
            # JSON has no infinity.
            "cell": json.dumps({k: _plain(v) for k, v in one.cell.items()}, ensure_ascii=False),
            "provenance": provenance[one.study],
        }
    return row


def _plain(value: object) -> object:
    return "inf" if isinstance(value, float) and math.isinf(value) else value
