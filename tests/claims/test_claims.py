"""Every claim is decided by the numbers: on real ones, and on ones that say the contrary."""

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from click.testing import CliRunner
from tests.claims.kept import FOLDER, read_kept

from manyserver import claims
from manyserver.__main__ import main
from manyserver.claims import Evidence, Finding, NotBuilt, Verdict
from manyserver.claims.base import decide
from manyserver.claims.results import Results
from manyserver.claims.table import COLUMNS, as_table

ROOT = Path(__file__).parents[2]
NAMES = (ROOT / "tests" / "data" / "claims.txt").read_text().split()
"""The claims that there must be."""
SQ = {"policy": "sq d=2", "n_servers": np.inf}
SHARP = 1e-12


@cache
def kept() -> Results:
    return read_kept()


@cache
def found(name: str) -> Finding:
    return claims.load(name).finding(kept())


def test_no_claim_disappears() -> None:
    assert sorted(NAMES) == list(claims.names())


def test_claims_are_of_the_papers_and_of_studies_that_there_are() -> None:
    there = {path.stem for path in (ROOT / "config" / "studies").glob("*.yaml")}
    assert set(claims.studies()) <= there
    for name in NAMES:
        claim = claims.load(name)
        assert claim.paper in ("1502.05786", "1512.07873", "1801.05121")
        assert claim.statement.endswith(".")
        assert claim.number and claim.statement[0].isupper()


def test_most_claims_are_decided() -> None:
    decided = [n for n in NAMES if found(n).verdict in (Verdict.CONFIRMED, Verdict.REFUTED)]
    assert len(decided) >= 60


def place(cube: xr.Dataset, cell: dict[str, object]) -> dict[str, object]:
    return {axis: label for axis, label in cell.items() if axis in cube.dims}


def doctored(evidence: Iterable[tuple[Evidence, float]]) -> Results:
    """The kept results with other numbers, which are exact, in the cells of some evidence."""
    cubes = {study: cube.copy(deep=True) for study, cube in kept().cubes.items()}
    fits = {study: table.copy() for study, table in kept().fits.items()}
    for one, value in evidence:
        if "variable" in one.cell:
            cube, name = cubes[one.study], str(one.cell["variable"])
            at = place(cube, dict(one.cell))
            cube[name].loc[at] = value
            width = f"{name}_half_width"
            if width in cube:
                known = np.isfinite(cube[width].loc[at])
                cube[width].loc[at] = np.where(known, SHARP, np.nan)
        else:
            table = fits[one.study]
            row = np.logical_and.reduce([table[key] == cell for key, cell in one.cell.items()])
            assert row.sum() == 1
            table.loc[row, ["estimate", "standard_error"]] = value, SHARP
    return Results(cubes, fits)


def was(one: Evidence) -> float:
    """The number in the cell, from which that of the evidence was computed."""
    if "variable" not in one.cell:
        return one.value
    cube = kept().cubes[one.study]
    values = cube[str(one.cell["variable"])].loc[place(cube, dict(one.cell))].values
    return float(np.nanmax(values))


def agreeing(one: Evidence) -> float:
    """A number for the cell with which the evidence lies well inside of its interval."""
    if np.isinf(one.low):
        inside = one.high - abs(one.high) / 2 - 1e-3
    elif np.isinf(one.high):
        inside = one.low + abs(one.low) / 2 + 1e-3
    else:
        inside = (one.low + one.high) / 2
    # Claims are about numbers themselves, or about multiples of them.
    return was(one) * inside / one.value


NOT_IN_A_CELL = {"stability_limit_of_sq"}
"""Claims about which points have a value, see below."""


@pytest.mark.parametrize("name", sorted(set(NAMES) - NOT_IN_A_CELL))
def test_a_verdict_follows_from_the_numbers(name: str) -> None:
    """Numbers that contradict it change it, whatever it is."""
    claim, finding = claims.load(name), found(name)
    if finding.verdict is Verdict.NOT_COMPUTABLE:
        assert claim.studies == () and finding.note
        return
    evidence = list(claim.evidence(kept()))
    if finding.verdict is not Verdict.CONFIRMED:
        agreed = claim.finding(doctored((one, agreeing(one)) for one in evidence))
        assert agreed.verdict is Verdict.CONFIRMED
    if finding.verdict is not Verdict.REFUTED:
        one = finding.evidence
        assert one is not None
        others = [was(one) * 1e3, was(one) / 1e3, was(one) + 1, was(one) - 1, 1e6]
        verdicts = {claim.finding(doctored([(one, other)])).verdict for other in others}
        assert Verdict.REFUTED in verdicts


def with_sq(rates: list[float], value: float) -> Results:
    cubes = {study: cube.copy(deep=True) for study, cube in kept().cubes.items()}
    cubes["fig5_naive"]["sojourn_mean"].loc[
        {**SQ, "method_name": "mean_field", "arrival_rate": rates}
    ] = value
    cubes["fig5_naive"]["status"].loc[
        {**SQ, "method_name": "mean_field", "arrival_rate": rates}
    ] = "ok"
    return Results(cubes, kept().fits)


def test_where_sq_is_stable_follows_from_the_points_that_there_are() -> None:
    limit = claims.load("stability_limit_of_sq")
    rates = kept().cubes["fig5_naive"]["arrival_rate"].values.tolist()
    everywhere, seldom = with_sq(rates, 2.0), with_sq([r for r in rates if r > 0.22], np.nan)
    assert limit.finding(kept()).verdict is Verdict.CONFIRMED
    assert limit.finding(seldom).verdict is Verdict.REFUTED
    assert limit.finding(everywhere).verdict is Verdict.NOT_BUILT


@pytest.mark.parametrize("name", NAMES)
def test_a_claim_says_that_its_study_was_not_built(name: str) -> None:
    claim = claims.load(name)
    empty = claim.finding(Results({}, {}))
    if claim.studies:
        assert empty.verdict is Verdict.NOT_BUILT
        assert any(f"the study {study} was not built" == empty.note for study in claim.studies)
    else:
        assert empty.verdict is Verdict.NOT_COMPUTABLE


@pytest.mark.parametrize("name", NAMES)
def test_a_study_that_was_edited_is_told(name: str) -> None:
    """Cubes without most of what they had cost no more than the claims that need it."""
    axes = {
        study: {dim: cube[dim].values for dim in cube.dims} for study, cube in kept().cubes.items()
    }
    cubes = {study: xr.Dataset(coords=labels) for study, labels in axes.items()}
    fits = {study: table[:0] for study, table in kept().fits.items()}
    finding = claims.load(name).finding(Results(cubes, fits))
    assert finding.verdict in (Verdict.NOT_BUILT, Verdict.NOT_COMPUTABLE)
    assert finding.note


def test_the_known_counterexamples_are_found() -> None:
    two = found("scheme2_better_two_choices")
    assert two.verdict is Verdict.REFUTED
    assert "arrival_rate 0.9084 to 0.9899 at C = (4/5, 6/5)" in two.note
    cell: dict[str, Any] = {"system": "C = (4/5, 6/5)", "arrival_rate": 0.95, "d": 2}
    means = [
        kept().read("choices", "sojourn_mean", policy=f"Scheme {i}", **cell)[0].value
        for i in (1, 2)
    ]
    np.testing.assert_allclose(means, [2.13909, 2.14786], atol=5e-6)
    assert "0.9428 to 0.99 at C = (2/3, 4/3), d = 5" in found("scheme2_better_any_choices").note
    ratio = found("scheme2_better_any_ratio")
    assert ratio.verdict is Verdict.REFUTED and "0.9009 to 0.95 at r = 1.5, f = 0.5" in ratio.note
    for name, ends in (
        ("scheme1_beats_optimal_split", "0.1396 to 0.4786"),
        ("scheme2_beats_optimal_split", "0.1396 to 0.4764"),
        ("scheme2_beats_optimal_hybrid", "0.1 to 0.8192"),
    ):
        assert found(name).verdict is Verdict.REFUTED
        assert found(name).note.endswith(f"arrival_rate {ends}")
    assert found("rate_of_q2_kolmogorov").verdict is Verdict.CONFIRMED
    assert found("rate_of_q2_kolmogorov_is_half").verdict is Verdict.REFUTED


def number(value: float, width: float, low: float, high: float) -> Evidence:
    return Evidence(value, width, low, high, "choices", {"policy": f"{value}"})


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        (0.0, Verdict.CONFIRMED),
        (0.89, Verdict.CONFIRMED),
        (0.91, Verdict.UNDECIDED),
        (-1.09, Verdict.UNDECIDED),
        (1.11, Verdict.REFUTED),
        (-1.11, Verdict.REFUTED),
    ],
)
def test_one_number_decides_by_its_interval(value: float, verdict: Verdict) -> None:
    claim = claims.load(NAMES[0])
    assert decide(claim, [number(value, 0.1, -1, 1)]).verdict is verdict


def test_one_counterexample_is_enough_and_is_told() -> None:
    claim = claims.load(NAMES[0])
    numbers = [number(0, 0.1, -np.inf, 1), number(5, 0.1, -np.inf, 1), number(2, 0.1, -np.inf, 1)]
    finding = decide(claim, numbers)
    assert finding.verdict is Verdict.REFUTED
    assert finding.evidence is numbers[1]
    assert finding.note == "2 of 3 numbers against it"


def test_intervals_of_many_numbers_hold_together() -> None:
    """A true claim on 50 numbers is called false in at most 5 % of all cases.

    Of 2000 such cases, 100 are expected at most; more than 139 have a probability below 1e-4.
    """
    claim, rng = claims.load(NAMES[0]), np.random.default_rng(7)
    draws = rng.normal(size=(2000, 50))
    wrong = sum(
        decide(claim, [number(x, 1.96, 0.0, 0.0) for x in row]).verdict is Verdict.REFUTED
        for row in draws
    )
    assert 0 < wrong < 139


def test_numbers_without_an_interval_decide_nothing() -> None:
    claim = claims.load(NAMES[0])
    finding = decide(claim, [number(0.0, 0.1, -1, 1), number(7.0, np.nan, -1, 1)])
    assert finding.verdict is Verdict.CONFIRMED
    assert finding.note == "1 cells without a reliable interval left out"
    assert decide(claim, [number(7.0, np.nan, -1, 1)]).verdict is Verdict.NOT_BUILT


def test_what_is_not_in_a_study_is_named() -> None:
    with pytest.raises(NotBuilt, match="the study choices has no policy sed"):
        kept().read("choices", "sojourn_mean", policy="sed")
    with pytest.raises(NotBuilt, match="the study choices has no spectral_gap"):
        kept().read("choices", "spectral_gap")
    with pytest.raises(NotBuilt, match="the study tail_decay has no such fit"):
        kept().fitted("tail_decay", policy="sed")


def test_the_table_says_where_each_number_is() -> None:
    """The cell that is told holds the number, where the claim is about a number itself."""
    findings = [found(name) for name in NAMES]
    table = as_table(findings, dict.fromkeys(["", *kept().cubes], "told"))
    assert tuple(table) == COLUMNS
    assert table["name"].tolist() == NAMES
    known = table[table["value"].notna()]
    assert len(known) > 100
    plain = {"scheme1_beats_optimal_split", "mean_waiting_bound", "diffusion_exponentially_ergodic"}
    for _, row in known.iterrows():
        cell = {k: np.inf if v == "inf" else v for k, v in json.loads(row["cell"]).items()}
        one = Evidence(row["value"], 0, 0, 0, row["study"], cell)
        assert np.isfinite(was(one))
        if row["name"] in plain:
            assert was(one) == row["value"]
            plain.remove(row["name"])
    assert not plain


def test_the_command_writes_a_table_and_a_page(tmp_path: Path) -> None:
    for study in ("choices", "halfin_whitt"):
        (tmp_path / study).mkdir()
        for file in (FOLDER / study).iterdir():
            (tmp_path / study / file.name).write_bytes(file.read_bytes())
    arguments = ["--config", str(ROOT / "config"), "claims", "--results", str(tmp_path)]
    said = CliRunner().invoke(main, arguments)
    assert said.exit_code == 0, said.output
    assert f"claims.csv: {len(NAMES)} claims: " in said.output
    assert "refuted: Scheme 2 has a smaller mean" in said.output
    table = pd.read_csv(tmp_path / "claims.csv").set_index("name")
    assert set(table.index) == set(NAMES)
    assert table.loc["choices_help_scheme1", "verdict"] == "confirmed"
    assert table.loc["no_waiting_in_the_limit", "verdict"] == "study not built"
    assert table["provenance"].str.contains("built_from settings #").all()
    assert table.loc["choices_help_scheme1", "provenance"].startswith("study choices; source")
    page = (tmp_path / "claims.md").read_text()
    assert all(claims.load(name).statement in page for name in NAMES)


def test_arithmetic_of_numbers_has_the_errors_of_random_ones() -> None:
    """Half-widths of differences and ratios against simulated spreads, to 5 %."""
    rng = np.random.default_rng(11)
    one, other = kept().read("choices", "sojourn_mean", arrival_rate=0.9)[:2]
    one, other = replace(one, half_width=0.02), replace(other, half_width=0.03)
    a, b = (n.value + n.half_width * rng.normal(size=100_000) for n in (one, other))
    for combined, draws in ((one - other, a - b), (one / other, a / b)):
        assert abs(combined.half_width / draws.std() - 1) < 0.05
    assert [(one - 1).value, (one / 2).half_width] == [one.value - 1, 0.01]
