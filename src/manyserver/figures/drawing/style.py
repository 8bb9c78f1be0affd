"""How figures look: sizes, fonts, names, and one look per policy in all studies."""

import json
from collections.abc import Iterator, Sequence
from colorsys import hls_to_rgb
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import seaborn as sns

from manyserver.policies import names, policy_class
from manyserver.variables import SCHEMA

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "AXIS_LABELS",
    "WIDTHS",
    "Look",
    "beta_looks",
    "family",
    "jobs_looks",
    "level_looks",
    "looks",
    "policy_label",
    "pool_looks",
    "rate_label",
    "rate_looks",
    "size_looks",
    "symbol",
    "theme",
    "value_looks",
    "variable_label",
]

WIDTHS = {"column": 3.4, "page": 7.0}
"""Inches."""
LIGHTER = 0.45
"""How far towards white the second policy of a family goes."""

AXIS_LABELS = {
    "arrival_rate": r"Arrival rate per server, $\lambda$",
    "load": r"Load, $\rho$",
    "n_servers": "Number of servers, $N$",
    "level": "Jobs at a server, $k$",
    "choices": "Servers looked at in each pool, $d$",
    "n": "Number of servers, $n$",
    "beta": r"Spare capacity, $\beta$",
    "y1": r"$(Q_1 - n)/\sqrt{n}$ or $Y_1$",
    "y2": r"$Q_2/\sqrt{n}$ or $Y_2$",
}
UNITS = {"time": "mean job size / speed 1"}
_RC: dict[str, Any] = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 6.5,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "legend.columnspacing": 1.0,
    "figure.titlesize": 9,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.6,
    "mathtext.fontset": "dejavusans",
    "font.family": ["DejaVu Sans"],
    "pdf.fonttype": 42,
}

Colour = tuple[float, float, float]
_MORE = ["#332288", "#882255", "#117733", "#999933", "#661100", "#6699CC", "#AA4499"]
_PALETTE = [*sns.color_palette("colorblind", 10), *sns.color_palette(_MORE)]
_FAMILIES: dict[str, tuple[int, Any, Any]] = {
    "scheme1": (0, "o", "-"),
    "scheme2": (3, "s", (0, (5, 1.5))),
    "hybrid_sq": (2, "D", (0, (6, 1.5, 1, 1.5))),
    "optimal_split": (7, "P", (0, (1, 1))),
    "naive_split": (5, "X", (0, (3, 1, 1, 1, 1, 1))),
    "sed": (1, "v", (0, (8, 1.5, 2, 1.5))),
    "sq": (4, "^", (0, (2.5, 1))),
    "random": (8, "*", (0, (1, 2))),
    "jsq": (9, "<", (0, (4, 1, 4, 1, 1, 1))),
    "jiq": (6, ">", (0, (3, 2))),
    "pull": (10, "h", (0, (7, 1, 1, 1, 1, 1))),
    "threshold": (11, "p", (0, (2, 2, 6, 2))),
    "central_queue": (12, "d", (0, (9, 2))),
    "least_work": (13, "H", (0, (10, 2, 3, 2))),
    "round_robin": (14, "8", (0, (1, 4))),
    "weighted_round_robin": (15, (3, 1, 0), (0, (2, 1, 2, 4))),
    "weighted_random": (16, (4, 1, 0), (0, (4, 4))),
}
"""Position in the palette, marker and line of every family of policies, the same in all studies."""
FIRST_HUE, GOLDEN = 0.13, 0.618034
"""Hue of the first policy of another package, and from one to the next: all are far apart."""
_ORDER = (0, 3, 2, 1, 4, 5, 9, 7)
"""Positions in the palette of what has no order and no family."""
_MARKERS = "osD^vP<>X*"
_LINES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (6, 1.5, 1, 1.5)), (0, (1, 1)))


@dataclass(frozen=True)
class Look:
    """Colour, marker and line of one curve, and what the legend calls it."""

    label: str
    colour: Colour
    marker: Any
    line: Any
    hollow: bool = False


@contextmanager
def theme() -> Iterator[None]:
    """Set the look of all figures, and leave everything as it was afterwards."""
    settings = sns.axes_style("ticks") | sns.plotting_context("paper") | _RC
    with mpl.rc_context(settings):
        yield


def policy_label(label: str, name: str, parameters: dict[str, Any]) -> str:
    """Name a policy as a paper would, unless the study gave it a label of its own.

    Examples
    --------
    >>> policy_label("scheme1 d=(2,2)", "scheme1", {"d": [2, 2], "replacement": False})
    'Scheme 1, $d = (2, 2)$'
    >>> policy_label("hybrid_sq", "hybrid_sq", {"d": 2, "split": "optimal"})
    'Hybrid SQ(2), optimal split'
    >>> policy_label("the old one", "sq", {"d": 2})
    'the old one'
    """
    if not label.startswith(name):
        return label
    known = policy_class(name) if name in names() else None
    title = known.title if known else name.replace("_", " ")
    parts = []
    for key, value in parameters.items():
        if value is None or (key != "split" and value == getattr(known, key, None)):
            continue  # says nothing, as the default
        if key == name:
            title += f" {value}"
        elif key == "d":
            if isinstance(value, int):
                title += f"({value})"
            else:
                parts.append(f"$d = ({', '.join(str(count) for count in value)})$")
        elif key == "split" and isinstance(value, str):
            parts.append(f"{value} split")
        elif key == "replacement":
            parts += ["with replacement"] if value else []
        elif isinstance(value, list):
            parts.append(f"{key} ({', '.join(f'{number:g}' for number in value)})")
        else:
            parts.append(f"{key} {value}")
    return ", ".join([title, *parts])


def looks(cube: "xr.Dataset", without: tuple[str, ...] = ()) -> list[Look]:
    """Return a look for every policy of a cube, in its order.

    A family of policies has one colour, marker and line in all studies; further policies of the
    family in the same cube are lighter, with hollow markers. Parameters named in `without` are not
    part of the labels.
    """
    found: list[Look] = []
    families = [str(name) for name in cube["policy_name"].values]
    for place, name in enumerate(families):
        label = str(cube["policy"].values[place])
        parameters = _told(cube.isel(policy=place)["policy_parameters"])
        if without:
            label = name
            parameters = {key: parameters[key] for key in parameters if key not in without}
        colour, marker, line = family(name)
        nth = families[:place].count(name)
        base = np.array(colour)
        red, green, blue = base + (1 - base) * (1 - (1 - LIGHTER) ** nth)
        found.append(
            Look(
                label=policy_label(label, name, parameters),
                colour=(float(red), float(green), float(blue)),
                marker=marker,
                line=line,
                hollow=nth % 2 == 1,
            )
        )
    return found


def _told(parameters: "xr.DataArray") -> dict[str, Any]:
    """Return the parameters of a policy that are the same on all axes of the study's own."""
    first, *others = (json.loads(str(text)) for text in parameters.values.flat)
    return {key: first[key] for key in first if all(other[key] == first[key] for other in others)}


def family(name: str) -> tuple[Colour, Any, Any]:
    """Return colour, marker and line of a family, by its name alone.

    Policies that are not of this package have some of their own, in alphabetical order.

    Examples
    --------
    >>> family("one_of_a_package")[1]
    (5, 1, 0)
    """
    if name in _FAMILIES:
        place, marker, line = _FAMILIES[name]
        return tuple(_PALETTE[place]), marker, line
    others = sorted({*names(), name}.difference(_FAMILIES))
    place = others.index(name)
    hue = (FIRST_HUE + place * GOLDEN) % 1
    return hls_to_rgb(hue, 0.4, 0.6), (place + 5, 1, 0), (0, (place + 2, 1, 1, 2))


def rate_label(rate: float, dimension: str) -> str:
    """Name an arrival rate or a load by its symbol and value."""
    symbol = r"\rho" if dimension == "load" else r"\lambda"
    return f"${symbol} = {rate:.6g}$"


def rate_looks(rates: Sequence[float], dimension: str) -> list[Look]:
    """Return a look for every arrival rate or load, from dark to light."""
    return _sequence([rate_label(rate, dimension) for rate in rates], "viridis")


def value_looks(labels: Sequence[str]) -> list[Look]:
    """Return a look for every value of an axis, from dark to light."""
    return _sequence(labels, "viridis")


def beta_looks(betas: Sequence[float]) -> list[Look]:
    """Return a look for every beta, from dark to light."""
    return _sequence([rf"$\beta = {beta:.6g}$" for beta in betas], "viridis")


def level_looks(levels: Sequence[float], unit: str = "") -> list[Look]:
    """Return a look for every curve Gamma, by its level kappa in some unit."""
    labels = [rf"$\Gamma^{{(\kappa)}}$, $\kappa = {level:.3g}{unit}$" for level in levels]
    return _sequence(labels, "flare")


def size_looks(sizes: Sequence[float]) -> list[Look]:
    """Return a look for every number of servers, hollow but for the limit."""
    labels = ["diffusion" if np.isinf(size) else f"$n = {size:.0f}$" for size in sizes]
    found = _sequence(labels, "viridis")
    # The limit is the darkest, whatever its place.
    ranked = sorted(range(len(sizes)), key=lambda place: -sizes[place])
    return [
        replace(
            look,
            colour=found[ranked.index(place)].colour,
            line="-",
            hollow=not np.isinf(sizes[place]),
        )
        for place, look in enumerate(found)
    ]


def jobs_looks(labels: Sequence[str]) -> list[Look]:
    """Return a look for each of the job sizes and disciplines, by their labels."""
    return [
        Look(
            label=label,
            colour=_PALETTE[_ORDER[place % len(_ORDER)]],
            marker=_MARKERS[place % len(_MARKERS)],
            line=_LINES[place % len(_LINES)],
        )
        for place, label in enumerate(labels)
    ]


def pool_looks(speeds: Sequence[float | None]) -> list[Look]:
    """Return a look for every pool, from dark to light."""
    labels = [
        f"pool {pool}" if speed is None else f"pool {pool}, speed {speed:.3g}"
        for pool, speed in enumerate(speeds)
    ]
    return _sequence(labels, "mako")


def _sequence(labels: Sequence[str], palette: str) -> list[Look]:
    colours = sns.color_palette(palette, len(labels))
    return [
        Look(
            label=label,
            colour=colours[place],
            marker=_MARKERS[place % len(_MARKERS)],
            line=_LINES[place % len(_LINES)],
        )
        for place, label in enumerate(labels)
    ]


def symbol(name: str) -> str:
    """Return the symbol of a variable.

    Examples
    --------
    >>> symbol("sojourn_mean")
    'W'
    """
    return SCHEMA.lookup(name).symbol


def variable_label(name: str) -> str:
    """Return the axis label of a variable: words, symbol and unit.

    Examples
    --------
    >>> variable_label("jobs_per_server")
    'Mean number of jobs per server, all pools, $L$'
    """
    variable = SCHEMA.lookup(name)
    words = variable.long_name.split(" (")[0]
    unit = f"\n({UNITS[variable.units]})" if variable.units in UNITS else ""
    return f"{words[0].upper()}{words[1:]}, ${variable.symbol}${unit}"
