"""Why: what the next run would compute and redraw, in points rather than jobs."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from manyserver.inspection.past import Past
from manyserver.inspection.products import damaged_files, failed_products
from manyserver.inspection.provenance import built_from
from manyserver.plan import Plan
from manyserver.study.points import Point
from manyserver.study.storage.damage import is_damaged
from manyserver.study.storage.records import is_failed
from manyserver.study.storage.store import Store
from manyserver.study.storage.unit_file import expected_header, read_header, read_unit
from manyserver.study.study import Study

__all__ = ["Answer", "summary", "why"]

MOST_CHANGES = 3
"""Changed fingerprints that are named for one reason."""


@dataclass
class Answer:
    """What the next run would do for a study.

    Parameters
    ----------
    study : str
        Its name.
    reasons : dict
        Number of points that would be computed, by reason.
    reused : int
        Points that are stored.
    left_out : int
        Points that are never computed.
    renewed : dict
        Reason why a file would be made again, by the file.
    notes : list of str
        What else a reader should know.
    """

    study: str
    reasons: Counter[str] = field(default_factory=Counter)
    reused: int = 0
    left_out: int = 0
    renewed: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        count = self.reasons.total()
        kept = f"{self.reused} stored, {self.left_out} left out"
        lines = [f"{self.study}: {_points(count)} to compute, {kept}"]
        lines += [f"  {n} {reason}" for reason, n in self.reasons.items()]
        files: dict[str, list[str]] = {}
        for file, reason in self.renewed.items():
            files.setdefault(reason, []).append(file)
        lines += [f"  {', '.join(group)}: {reason}" for reason, group in files.items()]
        if not count and not self.renewed:
            lines[0] += "; nothing to do"
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])


def why(plan: Plan, name: str, results: Path) -> Answer:
    """Say what the next run would do for a study.

    Parameters
    ----------
    plan : Plan
        Has the study.
    name : str
        Its name.
    results : pathlib.Path
        Folder of the results.
    """
    study = plan.study(name)
    answer = Answer(name)
    answer.left_out = sum(bool(point.left_out) for point in study.points)
    stale = _stale_points(plan, study, results, answer)
    store = Store(results / "points")
    found = store.find(stale)
    missing = [point for point in stale if point.id not in found]
    answer.reused = len(study.points) - answer.left_out - len(missing)
    past = Past(store, results / name / "cube.nc")
    reasons = [past.reason(point) for point in missing]
    new = [point for point, reason in zip(missing, reasons, strict=True) if not reason]
    told = _values_that_are_new(study, new)
    for reason in reasons:
        answer.reasons[reason or told] += 1
    for reason, changes in past.fingerprints.items():
        count = answer.reasons.pop(reason)
        shown = ", ".join(sorted(changes)[:MOST_CHANGES])
        more = ", ..." if len(changes) > MOST_CHANGES else ""
        answer.reasons[f"{reason} (fingerprint {shown}{more})"] = count
    if store.damaged:
        answer.notes.append(f"damaged lines in the store, which are ignored: {store.damaged}")
    _files(plan, study, results, answer)
    return answer


def summary(plan: Plan, answers: Iterable[Answer], results: Path) -> str:
    """Say why the files that sum up all studies would be made again; empty if they would not.

    Parameters
    ----------
    plan : Plan
        Of the run.
    answers : iterable of Answer
        What :func:`why` says of all of its studies.
    results : pathlib.Path
        Folder of the results.
    """
    renewed = {file for answer in answers for file in answer.renewed}
    claims = _difference(results / "claims.csv", plan.claims_digest())
    if not claims and renewed & {"cube.nc", "fits.csv"}:
        claims = "made from the cubes"
    report = "" if (results / "report.html").exists() else "missing"
    if not report and (claims or renewed):
        report = "made from all studies"
    told = {"claims": claims, "report.html": report}
    return "\n".join(f"{name}: {reason}" for name, reason in told.items() if reason)


def _stale_points(plan: Plan, study: Study, results: Path, answer: Answer) -> list[Point]:
    """Points of the units whose files would be made again."""
    stale: list[Point] = []
    dropped = 0
    damaged = damaged_files(plan, study.name, results)
    answer.notes += [f"{path}: is damaged; the next run makes it again" for path in damaged]
    for name, unit in study.units.items():
        path = results / study.name / "units" / f"{name}.jsonl"
        header, wanted = read_header(path), expected_header(unit)
        if header is not None and header.failed:
            answer.notes.append(f"{_points(header.failed)} of {name} failed")
        if path in damaged:
            answer.renewed["cube.nc"] = "a unit is damaged"
            stale += [point for point in unit.points if not point.left_out]
        elif header is None or (header.points, header.code) != (wanted.points, wanted.code):
            answer.renewed["cube.nc"] = "points change" if path.exists() else "units are missing"
            stale += [point for point in unit.points if not point.left_out]
            dropped += _dropped(path, unit.points) if header is not None else 0
    if dropped:
        answer.notes.append(f"{_points(dropped)} no more in the study; the store keeps them")
    return stale


def _points(count: int) -> str:
    return f"{count or 'no'} point{'' if count == 1 else 's'}"


def _dropped(path: Path, points: Iterable[Point]) -> int:
    ids = {point.id for point in points}
    try:
        return sum(
            record.point_id not in ids for record in read_unit(path) if not is_failed(record)
        )
    except ValueError:
        return 0


def _values_that_are_new(study: Study, missing: Iterable[Point]) -> str:
    """Name the values on an axis all of whose points are missing."""
    ids = {point.id for point in missing}
    there: dict[str, dict[object, bool]] = {}
    for point in study.points:
        if not point.left_out:
            for axis, value in {"method": point.method, **point.labels}.items():
                values = there.setdefault(axis, {})
                values[value] = values.get(value, True) and point.id in ids
    parts = [
        f"{axis} {', '.join('limit' if v is None else f'{v}' for v, new in values.items() if new)}"
        for axis, values in there.items()
        if any(values.values()) and not all(values.values())
    ]
    return f"new ({'; '.join(parts)})" if parts else "new"


def _files(plan: Plan, study: Study, results: Path, answer: Answer) -> None:
    """Say which files would be made again; a figure stands for its two files."""
    name, folder = study.name, results / study.name
    wanted = {"cube.nc": ([folder / "cube.nc"], plan.cube_digest(name))}
    if study.config.fits:
        wanted["fits.csv"] = ([folder / "fits.csv"], plan.fits_digest(name))
    for table in study.config.tables:
        files = [folder / f"tables/{table.name}.csv"]
        wanted[f"tables/{table.name}"] = (files, plan.table_digest(name, table.name))
    for item in study.config.figures:
        stem = f"figures/{item.title}"
        files = [folder / f"{stem}.{suffix}" for suffix in ("png", "pdf")]
        wanted[stem] = (files, plan.figure_digest(name, item.title))
    failed = {} if plan.allow_failures(name) else failed_products(plan, name, results)
    for file, (paths, digest) in wanted.items():
        reasons = [_difference(path, digest) for path in paths]
        reasons += [
            f"failed before: {reason}"
            for product, reason in failed.items()
            if product.startswith(str(paths[0]))
        ]
        reason = answer.renewed.get(file) or next((text for text in reasons if text), "")
        if not reason and "cube.nc" in answer.renewed:
            reason = "made from the cube"
        if reason:
            answer.renewed[file] = reason


def _difference(path: Path, digest: str) -> str:
    if not path.exists():
        return "missing"
    if is_damaged(path):
        return "damaged"
    before = built_from(path)
    if before is None or before == digest:
        return ""
    old, new = (dict(zip(*[iter(text.split())] * 2, strict=False)) for text in (before, digest))
    changed = [word for word in new if old.get(word) != new[word]]
    return f"its {' and '.join(changed)} changed"
