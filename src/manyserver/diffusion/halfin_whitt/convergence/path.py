r"""Paths of the reflected diffusion, alone or beside those of the queues that they approximate.

.. math:: dY_1 = \sqrt2\,dW - (\beta+Y_1-Y_2)\,dt - dU,\qquad dY_2 = dU - Y_2\,dt,

with :math:`Y_1 \le 0` and U growing only while :math:`Y_1 = 0`. A step of length h freezes the
drift and reflects exactly: the largest value of a Brownian bridge has the closed-form law

.. math:: m = \tfrac12\bigl(D + \sqrt{D^2 - 4h\log R}\bigr)

for a move D and R uniform on (0, 1). The error is of the first order in h, where that of projected
Euler steps is of the order of its square root.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from manyserver.checks import checked_count, checked_number
from manyserver.diffusion.halfin_whitt.checks import (
    check_beta,
    check_n,
    check_points,
)
from manyserver.diffusion.halfin_whitt.convergence.coupling import poisson_and_brownian
from manyserver.diffusion.halfin_whitt.labels import labelled

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["path"]

EVENTS_PER_CELL = 4.0
"""Arrivals in an interval on which both paths are compared, about."""
MOST_CELLS = 1 << 26
"""Intervals of all replications together, about a gigabyte and a half."""


def path(
    beta: float,
    horizon: float = 10.0,
    *,
    step: float = 0.01,
    start: ArrayLike = (0.0, 0.0),
    replications: int = 1,
    seed: int = 1,
    n: int | None = None,
) -> xr.Dataset:
    r"""Simulate the diffusion limit, and the queues that it approximates from the same noise.

    Parameters
    ----------
    beta : float
        Spare capacity, > 0: the arrival rate per server is :math:`1-\beta/\sqrt n`.
    horizon : float
        Time to simulate, > 0.
    step : float
        Longest time between two points of the path, > 0. It is shortened to divide the horizon,
        into a power of two with `n`.
    start : array_like, shape (2,)
        Start ``(y1, y2)`` with ``y1 <= 0 <= y2``.
    replications : int
        Independent paths.
    seed : int
        Seed, >= 0.
    n : int, optional
        Simulate join the shortest queue with n servers, too.

    Returns
    -------
    xarray.Dataset
        ``y1``, ``y2`` and ``local_time`` (replication, time). With `n`, also ``chain_y1`` and
        ``chain_y2`` (replication, time), which are :math:`(Q_1-n)/\sqrt n` and
        :math:`Q_2/\sqrt n`, and ``distance`` (replication), the largest difference of either
        coordinate over a mesh of about four arrivals.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    Theorem 1 of arXiv:1801.05121: as n grows, the queues converge to the diffusion as processes.
    Arrivals and potential departures are Poisson processes that follow the Brownian motions of the
    diffusion (:func:`poisson_and_brownian`), and the queues have exactly the law that they
    should. The distance is of the order of :math:`n^{-1/4}`: which of the potential departures meet
    an idle server is noise that the diffusion does not have.

    Examples
    --------
    >>> few = path(1.0, 2.0, n=100, replications=20)
    >>> many = path(1.0, 2.0, n=10_000, replications=20)
    >>> bool(many.distance.mean() < 0.5 * few.distance.mean())
    True
    """
    beta = check_beta(beta)
    horizon = checked_number("horizon", horizon)
    step = checked_number("step", step)
    replications = checked_count("replications", replications)
    seed = checked_count("seed", seed, 0)
    rng = np.random.default_rng(seed)
    first, second = check_points(start)
    if first.ndim:
        raise ValueError(f"start has shape {np.shape(start)}; must be (2,)")
    here = np.array([float(first), float(second)])
    told = {"beta": beta, "seed": seed, "start": here}
    if n is not None:
        coupled = _coupled(rng, beta, check_n(n, beta), horizon, step, here, replications)
        return coupled.assign_attrs(told)
    n_steps = max(1, math.ceil(horizon / step - 1e-9))
    _check_size(n_steps * replications, "step")
    noise = rng.standard_normal((replications, n_steps)) * math.sqrt(2 * horizon / n_steps)
    y = _reflected(rng, beta, horizon / n_steps, here, noise)
    attrs = {"method": "diffusion path"} | told
    return labelled(_columns(y), _coordinates(horizon, n_steps, replications), attrs)


def _reflected(
    rng: np.random.Generator, beta: float, step: float, start: np.ndarray, noise: np.ndarray
) -> np.ndarray:
    """Follow the diffusion; (y1, y2, local time) of shape (3, replication, time).

    Noise is that of the first coordinate, of variance ``2 * step``, (replication, interval).
    """
    replications, n_steps = noise.shape
    y = np.empty((3, n_steps + 1, replications))
    y[:, 0] = np.array([*start, 0.0])[:, np.newaxis]
    decay, half = math.exp(-step), math.exp(-step / 2)
    for now in range(n_steps):
        y1, y2, pushed = y[:, now]
        move = noise[:, now] - (beta + y1 - y2) * step
        uniform = 1 - rng.random(replications)
        peak = (move + np.sqrt(move**2 - 4 * step * np.log(uniform))) / 2
        push = np.maximum(y1 + peak, 0.0)
        # Rounding must not take the path across the boundary.
        y[0, now + 1] = np.minimum(y1 + move - push, 0.0)
        y[1, now + 1] = y2 * decay + push * half
        y[2, now + 1] = pushed + push
    return y.swapaxes(1, 2)


def _coupled(
    rng: np.random.Generator,
    beta: float,
    n: int,
    horizon: float,
    step: float,
    start: np.ndarray,
    replications: int,
) -> xr.Dataset:
    """Follow the queues and the diffusion on the same mesh of ``2**depth`` intervals."""
    arrivals = 1 - beta / math.sqrt(n)
    busy, waiting = n + round(start[0] * math.sqrt(n)), round(start[1] * math.sqrt(n))
    if not 0 <= waiting <= busy:
        raise ValueError(
            f"start = {start.tolist()}: must be a state of n = {n} servers, with no more servers "
            "that have a waiting customer than busy ones"
        )
    points = max(0, math.ceil(math.log2(horizon / step) - 1e-9))
    depth = max(points, math.ceil(math.log2(max(1.0, n * horizon / EVENTS_PER_CELL))))
    _check_size(replications << depth, "n")
    arrived, up = poisson_and_brownian(rng, n * arrivals, horizon, depth, replications)
    tried, down = poisson_and_brownian(rng, n, horizon, depth, replications)
    y = _reflected(rng, beta, horizon / 2**depth, start, up - down)
    queues = np.stack(
        [_queues(rng, beta, n, (busy, waiting), *pair) for pair in zip(arrived, tried, strict=True)]
    )
    chain = np.stack([queues[..., 0] - n, queues[..., 1]]) / math.sqrt(n)
    every = 2 ** (depth - points)
    values = _columns(y[..., ::every])
    values["chain_y1"], values["chain_y2"] = chain[..., ::every]
    values["distance"] = np.abs(chain - y[:2]).max(axis=(0, 2))
    attrs = {"method": "diffusion path coupled with queues", "n_servers": n}
    return labelled(values, _coordinates(horizon, 2**points, replications), attrs)


def _queues(
    rng: np.random.Generator,
    beta: float,
    n: int,
    start: tuple[int, int],
    arrived: np.ndarray,
    tried: np.ndarray,
) -> np.ndarray:
    """Follow one system of queues; (q1, q2) at the ends of the intervals, (time, 2)."""
    from manyserver.diffusion.halfin_whitt.jsq_kernel import follow

    queues = empty_queues(beta, n)
    queues[:2] = start
    total = int(arrived.sum())
    cells = np.concatenate([np.repeat(np.arange(len(part)), part) for part in (arrived, tried)])
    # Events of an interval come in random order.
    order = np.argsort(cells + rng.random(len(cells)))
    ranks = np.where(order < total, -1, rng.integers(n, size=len(cells)))
    ends = np.concatenate([[0], np.cumsum(arrived + tried)])
    record = np.empty((len(ends), 2), np.int64)
    follow(queues, n, ranks, ends, record)
    return record


def _columns(y: np.ndarray) -> dict[str, object]:
    return dict(zip(("y1", "y2", "local_time"), y, strict=True))


def _coordinates(horizon: float, n_steps: int, replications: int) -> dict[str, object]:
    return {
        "time": np.linspace(0, horizon, n_steps + 1),
        "replication": np.arange(replications),
    }


def _check_size(cells: int, name: str) -> None:
    if cells > MOST_CELLS:
        raise ValueError(
            f"{name}: the paths have {cells:g} intervals, at most {MOST_CELLS:g} fit; simulate "
            "a shorter horizon or fewer replications"
        )


def empty_queues(beta: float, n: int) -> np.ndarray:
    """Return the counts of an empty system, with more levels than any run reaches.

    Customers that find all levels full are lost. As ``P(Q_i = n)`` falls by ``lambda**n`` from
    level to level, less than ``exp(-60)`` of them are.
    """
    return np.zeros(4 + math.ceil(60 / (beta * math.sqrt(n))), np.int64)
