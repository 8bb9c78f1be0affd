"""Files of results that a run must make again: those that are damaged, or stand for a failure."""

import csv
from functools import reduce
from operator import or_
from pathlib import Path

from manyserver import fits
from manyserver.inspection.provenance import UnknownFile, provenance
from manyserver.plan import SUMMARIES, Plan
from manyserver.study.storage.damage import is_damaged
from manyserver.study.storage.locks import FolderInUse, sole_run
from manyserver.study.storage.unit_file import expected_header, read_header, read_unit

__all__ = ["all_failed", "damaged_files", "failed_products", "remove_spoilt"]


def damaged_files(plan: Plan, study: str, results: Path) -> list[Path]:
    """List the files of a study that are damaged; what is missing is not."""
    files = [results / file for file in (*plan.unit_files(study), *plan.products(study))]
    found = [path for path in files if is_damaged(path)]
    for name, unit in plan.study(study).units.items():
        path = results / study / "units" / f"{name}.jsonl"
        header, wanted = read_header(path), expected_header(unit)
        # What was cut between two lines shows by their number alone.
        if (
            header is not None
            and header.points == wanted.points
            and path not in found
            and len(read_unit(path)) != unit.n_wanted
        ):
            found.append(path)
    return found


def failed_products(plan: Plan, study: str, results: Path) -> dict[str, str]:
    """Return the reason of every figure and fit that failed, by its file and the fit's name."""
    found = {}
    for file in plan.products(study):
        path = results / file
        if path.suffix == ".png":
            try:
                reason = provenance(path).get("failed")
            except UnknownFile:
                continue
            if reason:
                found[str(path)] = str(reason)
        elif path.suffix == ".csv" and path.exists() and not is_damaged(path):
            with path.open(newline="") as rows:
                for row in csv.DictReader(rows):
                    note = row.get("note") or ""
                    if note.startswith(fits.FAILED):
                        found[f"{path}: {row['name']}"] = note.removeprefix(fits.FAILED)
    return found


def all_failed(plan: Plan, results: Path) -> dict[str, str]:
    """Return the reason of every figure and fit of all studies of a plan that failed."""
    return reduce(or_, [failed_products(plan, study, results) for study in plan.names], {})


def remove_spoilt(plan: Plan, results: Path, only_tell: bool = False) -> list[str]:
    """Remove what is damaged, and what failed unless that is allowed, so that a run makes it again.

    Parameters
    ----------
    plan : Plan
        Of the run.
    results : pathlib.Path
        Folder of the results.
    only_tell : bool, optional
        Whether to remove nothing.

    Returns
    -------
    list of str
        A line for every damaged file.
    """
    if not results.exists():
        return []
    try:
        with sole_run(results):
            damaged = [path for name in SUMMARIES if is_damaged(path := results / name)]
            for study in plan.names:
                damaged += damaged_files(plan, study, results)
            told = [f"{path}: is damaged; it is made again" for path in damaged]
            if only_tell:
                return told
            for study in plan.names:
                if not plan.allow_failures(study):
                    damaged += _files_of_failures(plan, study, results)
            for path in damaged:
                path.unlink(missing_ok=True)
    except FolderInUse:
        return []  # The other run's files are its own.
    return told


def _files_of_failures(plan: Plan, study: str, results: Path) -> list[Path]:
    files = {Path(name.partition(": ")[0]) for name in failed_products(plan, study, results)}
    return sorted(files | {path.with_suffix(".pdf") for path in files if path.suffix == ".png"})
