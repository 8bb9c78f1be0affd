"""Accept a study whose points were all computed, or refuse it."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from manyserver.study.points import point_name
from manyserver.study.running.run import FAILED_PRODUCTS, failure_table
from manyserver.study.storage.records import is_failed
from manyserver.study.storage.unit_file import read_header, read_unit
from manyserver.study.study import Study

__all__ = ["FailedPoints", "failed_points", "verify"]

ADVICE = (
    "They are tried again by the next run; 'allow_failures: true', in the study or in config.yaml, "
    "accepts them."
)


class FailedPoints(Exception):
    """Raised when a study has points, figures or fits that could not be computed."""


def failed_points(study: Study, unit_files: Iterable[Path]) -> dict[Path, dict[str, str]]:
    """List the points that could not be computed, with the reason, by file of a unit."""
    names = {point.id: point_name(point) for point in study.points}
    found: dict[Path, dict[str, str]] = {}
    for path in unit_files:
        header = read_header(path)
        if header is None or header.failed:
            told = {
                names.get(record.point_id, record.point_id): str(record.notes["reason"])
                for record in read_unit(path)
                if is_failed(record)
            }
            if told:
                found[path] = told
    return found


def verify(
    study: Study, unit_files: Iterable[Path], products: Mapping[str, str], accept: bool
) -> str:
    """Say how many points of a study failed, and which products.

    Parameters
    ----------
    study : Study
        The study.
    unit_files : iterable of pathlib.Path
        The files of all its units.
    products : mapping
        Reasons of the figures and fits that failed, by their names.
    accept : bool
        Whether the study is good enough even if some failed.

    Raises
    ------
    FailedPoints
        If some failed and that is not accepted. The files of units with failed points are removed,
        so that the next run computes them: these points alone, since the others are in the store.
    """
    failed = failed_points(study, unit_files)
    count = sum(len(told) for told in failed.values())
    total = sum(not point.left_out for point in study.points)
    lines = [f"{study.name}: {total} points, none failed"]
    if count:
        lines = [f"{study.name}: {count} of {total} points failed"]
        points = {name: why for told in failed.values() for name, why in told.items()}
        lines.append(failure_table(points))
    if products:
        lines += [FAILED_PRODUCTS, failure_table(products)]
    text = "\n".join(lines)
    if accept or not (count or products):
        return text
    for path in failed:
        path.unlink()
    raise FailedPoints(f"{text}\n{ADVICE}")
