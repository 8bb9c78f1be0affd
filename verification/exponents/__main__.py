"""Compare fitted exponents with what theory says of them, in all studies that are built.

Run ``uv run python verification/exponents`` after ``uv run snakemake --cores all --config
studies=all``. It reads every ``results/*/fits.csv`` and fails if any estimate is further from its
expected value than its error allows: at 5 % for all rows together (Holm's procedure). Guesses of
theory are shown, and do not count.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import norm

LEVEL = 0.05
SHOWN = ["study", "fit", "quantity", "parameter", "estimate", "standard_error", "expected", "z"]
GUESS = "is a guess"
PARAMETERS = (
    "exponent",
    "decay per server",
    "coefficient of 1/N",
    "coefficient of 1/n",
    "growth per level",
)


def rows(results: Path) -> pd.DataFrame:
    """Return the rows of all tables that have an expected value."""
    tables = [
        pd.read_csv(path).assign(study=path.parent.name)
        for path in sorted(results.glob("*/fits.csv"))
    ]
    if not tables:
        sys.exit(f"{results}: there is no fits.csv; build the studies first")
    table = pd.concat(tables, ignore_index=True)
    table["z"] = (table["estimate"] - table["expected"]) / table["standard_error"]
    asked = table["parameter"].isin(PARAMETERS)
    return table[asked & np.isfinite(table["expected"])]


def too_far(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that Holm's procedure rejects."""
    proven = table[table["z"].notna() & ~table["note"].fillna("").str.contains(GUESS)]
    chances = 2 * norm.sf(proven["z"].abs())
    order = np.argsort(chances)
    allowed = LEVEL / (len(order) - np.arange(len(order)))
    accepted = chances[order] >= allowed
    count = int(np.argmax(accepted)) if accepted.any() else len(order)
    return proven.iloc[order[:count]]


if __name__ == "__main__":
    found = rows(Path(sys.argv[1] if len(sys.argv) > 1 else "results"))
    known = found[np.isfinite(found["z"])]
    print(
        f"{len(found)} rows have an expected value, {len(found) - len(known)} of them no estimate"
    )
    print(f"beyond 1.96 standard errors: {(known['z'].abs() > 1.96).mean():.1%}")
    wrong = too_far(found)
    if len(wrong):
        print(wrong[SHOWN].to_string())
        sys.exit(1)
