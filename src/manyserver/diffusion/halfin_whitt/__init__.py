"""Join the shortest queue in the Halfin-Whitt regime: the queues, their limit, and how they meet.

There are n servers of speed 1 and Poisson arrivals at rate n - beta sqrt(n). Q_i is the number of
servers with at least i customers. As n grows, ((Q_1 - n) / sqrt(n), Q_2 / sqrt(n)) tends to a
reflected diffusion (Y1, Y2), arXiv:1801.05121.
"""

from manyserver.diffusion.halfin_whitt.convergence.distances import distances
from manyserver.diffusion.halfin_whitt.convergence.expansion import expansion
from manyserver.diffusion.halfin_whitt.convergence.gap import gap
from manyserver.diffusion.halfin_whitt.convergence.path import path
from manyserver.diffusion.halfin_whitt.finite.law import chain
from manyserver.diffusion.halfin_whitt.fluid_model.bounds import mean_waiting_bound, queue_bound
from manyserver.diffusion.halfin_whitt.fluid_model.flow import fluid, gamma_curve, hitting_time
from manyserver.diffusion.halfin_whitt.fluid_model.lyapunov import Lyapunov, lyapunov
from manyserver.diffusion.halfin_whitt.fluid_model.phase_portrait import portrait
from manyserver.diffusion.halfin_whitt.fluid_model.stein import SteinSolution
from manyserver.diffusion.halfin_whitt.limit.fluctuations import fluctuations
from manyserver.diffusion.halfin_whitt.limit.stationary import stationary

__all__ = [
    "Lyapunov",
    "SteinSolution",
    "chain",
    "distances",
    "expansion",
    "fluctuations",
    "fluid",
    "gamma_curve",
    "gap",
    "hitting_time",
    "lyapunov",
    "mean_waiting_bound",
    "path",
    "portrait",
    "queue_bound",
    "stationary",
]


def __dir__() -> list[str]:
    return __all__
