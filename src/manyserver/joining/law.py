r"""The joining law: where an arrival goes, given how many jobs the servers hold.

The state is the queue tail ``u[j, k]``, the fraction of the servers of pool ``j`` with at least
``k`` jobs. A class is a pair (pool, level); the policy ranks the classes. Among the servers that
a draw looks at, let ``lo`` be the fraction ranked after ``r`` and ``hi`` the fraction ranked
``r`` or after. Give every server looked at a uniform mark; the arrival joins the one with the
smallest mark among those of the best rank. A server looked at in draw ``g``, of rank ``r``, is
joined if every other one is ranked after ``r`` or has rank ``r`` and a larger mark, so that a
class ``c`` of rank ``r`` with the fraction ``x_c`` of the servers of draw ``g`` is joined with
probability

.. math::

    p_c = x_c \int_0^1 d_g L_g^{d_g - 1} \prod_{h \ne g} L_h^{d_h} \, dt,
    \qquad L_h = t \, \mathrm{hi}_h + (1 - t) \, \mathrm{lo}_h,

summed over the branches of the sampling. The integrand is a polynomial in ``t``, so Gauss'
quadrature is exact; every term is positive, so nothing cancels, however small the tails. Where
ranks differ between pools this is the telescoping law ``F_{r-1} - F_r`` of arXiv:1502.05786,
eq. (4.4)-(4.9). Without replacement and with finitely many servers, powers become ratios of
falling factorials (drawing from counts).

A full server ranks after all others. An arrival that would join one is blocked, so that the law
of the arrivals that are accepted leaves out the full classes.

Where servers announce themselves, the arrival joins one of the announced servers of the best
rank, each with the same probability, and the law above holds only while there are none. This is
a step function of the counts. It has no limit for many servers, since that depends on how often
the last announced server of a rank is taken.
"""

import numpy as np

from manyserver.joining.branch import BranchLaw, occupancy
from manyserver.model import System
from manyserver.policies import Policy, full

__all__ = ["JoiningLaw"]

ABSENT = 1e-12
"""Fraction of the servers below which there is none, up to rounding."""


class JoiningLaw:
    """The joining law of a policy on a system, with its derivatives.

    Parameters
    ----------
    system : System
        Pools and arrival rate; the number of servers matters only if `finite`.
    policy : Policy
        Read through its sampling and its rank table.
    levels : int
        Number of levels, 0 to ``levels - 1``; servers with more jobs do not exist.
    finite : bool
        Whether to draw from the counts of a finite system. With replacement the law is that of
        the limit at the same tails.

    Raises
    ------
    ValueError
        If servers announce themselves and the law is not that of a finite system.

    Attributes
    ----------
    full : numpy.ndarray of bool, shape (pool, level)
        The classes of full servers, which no arrival joins.

    Examples
    --------
    Two choices among equal servers, 30 % of them idle:

    >>> import manyserver as ms
    >>> law = JoiningLaw(ms.System(0.7, [ms.Pool(1, 1)]), ms.policy("sq", d=2), levels=2)
    >>> law.probabilities(np.array([[1.0, 0.7]])).round(2)
    array([[0.51, 0.49]])
    """

    def __init__(self, system: System, policy: Policy, levels: int, *, finite: bool = False):
        sampling = policy.sampling(system)
        if sampling.depends_on_all and not finite:
            raise ValueError(
                f"finite = False: must be True for policy {policy.name}, to which servers "
                "announce themselves: its joining law is a step function of the counts"
            )
        self.system = system
        self.levels = levels
        self.ranks = policy.rank_table(system, levels)
        self.full = full(system, levels)
        self.announced = sampling.announced_levels(system, levels)
        sizes = system.counts if finite and not sampling.replacement else None
        self.branches = sampling.branches
        self.replacement = sampling.replacement
        self._branches = [
            BranchLaw(branch, system, self.ranks, sizes) for branch in sampling.branches
        ]

    def probabilities(self, tails: np.ndarray) -> np.ndarray:
        """Probability that an arrival joins each class.

        Parameters
        ----------
        tails : numpy.ndarray, shape (pool, level)
            Queue tails; ``tails[:, 0]`` is one. Counts over pool sizes for a finite system.

        Returns
        -------
        numpy.ndarray, shape (pool, level)
            They sum to one less the probability of being blocked; zero for full classes.
        """
        return np.where(self.full, 0.0, self._destinations(tails))

    def blocking(self, tails: np.ndarray) -> np.ndarray:
        """Probability that an arrival is blocked, because all servers looked at are full.

        Parameters
        ----------
        tails : numpy.ndarray, shape (pool, level)

        Returns
        -------
        numpy.ndarray, shape (pool,)
            By the pool of one of these servers, each alike; together with the probabilities the
            sum is one.
        """
        return np.asarray(np.where(self.full, self._destinations(tails), 0.0).sum(axis=1))

    def densities(self, tails: np.ndarray) -> np.ndarray:
        """Probability of joining a class over the fraction of servers in it.

        Times the arrival rate this is the rate of arrivals to one server that holds k jobs,
        eq. (5.1) of arXiv:1502.05786; it needs no server to hold k jobs.

        Parameters
        ----------
        tails : numpy.ndarray, shape (pool, level)

        Returns
        -------
        numpy.ndarray, shape (pool, level)
            Zero for full classes, and where servers announce themselves for empty ones.
        """
        return np.where(self.full, 0.0, self._densities(tails))

    def _destinations(self, tails: np.ndarray) -> np.ndarray:
        """Probability that a class is chosen, full ones included."""
        mass = self.system.fractions[:, None] * occupancy(tails)
        return np.asarray(self._densities(tails) * mass)

    def _densities(self, tails: np.ndarray) -> np.ndarray:
        held = self.system.fractions[:, None] * occupancy(tails)
        present = held > ABSENT
        choices = self.announced & present
        if not self._branches and not choices.any():
            choices = self.full & present
        if choices.any():
            best = choices & (self.ranks == self.ranks[choices].min())
            return np.asarray(best / held[best].sum())
        total = np.zeros(self.ranks.shape)
        for branch in self._branches:
            total += branch.densities(tails)
        return np.where(present, total, 0.0) if self.announced.any() else total

    def log_densities(self, log_tails: np.ndarray) -> np.ndarray:
        """Logarithm of the densities, for tails that are too small for floating point.

        Parameters
        ----------
        log_tails : numpy.ndarray, shape (pool, level)
            Natural logarithm of the queue tails.

        Returns
        -------
        numpy.ndarray, shape (pool, level)

        Raises
        ------
        ValueError
            If the law is that of a finite system, unless with replacement and nothing announced.
        """
        self._check_smooth()
        parts = [branch.log_densities(log_tails) for branch in self._branches]
        return np.where(self.full, -np.inf, np.logaddexp.reduce(parts, axis=0))

    def jacobian(self, tails: np.ndarray) -> np.ndarray:
        """Differentiate the probabilities by the tails.

        Parameters
        ----------
        tails : numpy.ndarray, shape (pool, level)

        Returns
        -------
        numpy.ndarray, shape (pool, level, pool, level)
            Element ``[j, k, i, l]`` is the derivative of ``p[j, k]`` by ``u[i, l]``.

        Raises
        ------
        ValueError
            If servers announce themselves; and likewise for all derivatives below.
        """
        self._check_smooth()
        n = self.ranks.size
        total = np.zeros((n, n))
        for branch in self._branches:
            total += branch.jacobian(tails)
        total[self.full.ravel()] = 0.0
        return total.reshape(self.ranks.shape * 2)

    def hessian(self, tails: np.ndarray) -> np.ndarray:
        """Differentiate the probabilities twice by the tails.

        Parameters
        ----------
        tails : numpy.ndarray, shape (pool, level)

        Returns
        -------
        numpy.ndarray, shape (pool, level, pool, level, pool, level)
        """
        self._check_smooth()
        n = self.ranks.size
        total = np.zeros((n, n, n))
        for branch in self._branches:
            total += branch.hessian(tails)
        total[self.full.ravel()] = 0.0
        return total.reshape(self.ranks.shape * 3)

    def curvature(self, tails: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        """Sum of the second derivatives times a covariance of the tails, without the Hessian.

        Half of it is the mean change of the probabilities when the tails fluctuate.

        Parameters
        ----------
        tails : numpy.ndarray, shape (pool, level)
        covariance : numpy.ndarray, shape (pool, level, pool, level)

        Returns
        -------
        numpy.ndarray, shape (pool, level)
        """
        self._check_smooth()
        n = self.ranks.size
        total = np.zeros(n)
        for branch in self._branches:
            total += branch.curvature(tails, covariance.reshape(n, n))
        return np.where(self.full, 0.0, total.reshape(self.ranks.shape))

    def size_correction(self, tails: np.ndarray) -> np.ndarray:
        """Coefficient of 1/N in the probabilities of a system with N servers at the same tails.

        Zero with replacement, where the law of a finite system is that of the limit.

        Parameters
        ----------
        tails : numpy.ndarray, shape (pool, level)

        Returns
        -------
        numpy.ndarray, shape (pool, level)
            With unbounded buffers it sums to zero.
        """
        self._check_smooth()
        total = np.zeros(self.ranks.shape)
        if not self.replacement:
            mass = self.system.fractions[:, None] * occupancy(tails)
            for branch in self._branches:
                total += mass * branch.size_correction(tails)
        return np.where(self.full, 0.0, total)

    def _check_smooth(self) -> None:
        if self.announced.any():
            raise ValueError(
                "policy: servers announce themselves to it; must be one with a joining law that is "
                "a smooth function of the queue tails"
            )
