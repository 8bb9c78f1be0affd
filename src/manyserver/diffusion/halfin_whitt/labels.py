"""Every variable that a result on the Halfin-Whitt regime can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from manyserver.origin import with_version
from manyserver.schema import ERROR, HALF_WIDTH, Purpose, Schema, Suffix, Variable

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["SCHEMA", "labelled"]

_GRID = ("x1", "x2")
_PATH = ("replication", "time")
_FLUID = ("path", "step")

BOUND, DIAGNOSTIC = Purpose.BOUND, Purpose.DIAGNOSTIC
RELATIVE_ERROR = Purpose.RELATIVE_ERROR
_VARIABLES = {
    # Coordinates
    "x1": Variable(("x1",), "1", "X_1", "minus idle servers over sqrt(n)"),
    "x2": Variable(("x2",), "1", "X_2", "servers with a waiting customer over sqrt(n)"),
    "time": Variable(("time",), "time", "t", "time"),
    "replication": Variable(("replication",), "1", "", "independent replication"),
    "check": Variable(("check",), "1", "", "equation, bound or drift condition"),
    # Lyapunov function
    "idle_cost": Variable(_GRID, "time", "f^{(1)}", "time that the fluid path has many idle"),
    "waiting_cost": Variable(_GRID, "time", "f^{(2)}", "time that the fluid path has many waiting"),
    "log_lyapunov": Variable(_GRID, "1", r"\log V", "logarithm of the Lyapunov function"),
    "relative_drift": Variable(_GRID, "1/time", "GV/V", "drift of the Lyapunov function over it"),
    "epsilon": Variable((), "1", r"\epsilon", "width of the step"),
    "alpha": Variable((), "1/time", r"\alpha", "exponent of the Lyapunov function"),
    "drift_rate": Variable((), "1/time", "c", "rate of the drift condition"),
    "drift_constant": Variable((), "1/time", "d", "constant of the drift condition"),
    "compact_set": Variable((), "1", r"\kappa_2", "side of the square outside of which V falls"),
    "violation": Variable(("check",), "1", "", "largest violation on the grid", DIAGNOSTIC),
    # Paths
    "y1": Variable(_PATH, "1", "Y_1", "diffusion: minus idle servers over sqrt(n)"),
    "y2": Variable(_PATH, "1", "Y_2", "diffusion: waiting customers over sqrt(n)"),
    "local_time": Variable(_PATH, "1", "U", "diffusion: pushes at the boundary"),
    "chain_y1": Variable(_PATH, "1", r"(Q_1-n)/\sqrt n", "queues: minus idle servers, scaled"),
    "chain_y2": Variable(_PATH, "1", r"Q_2/\sqrt n", "queues: waiting customers, scaled"),
    "distance": Variable(
        ("replication",), "1", "", "largest distance between the two paths at the times given"
    ),
    # Simulation
    "q1_mean": Variable((), "servers", "E Q_1", "mean number of busy servers"),
    "q2_mean": Variable((), "servers", "E Q_2", "mean number of servers with at least 2 customers"),
    "q3_mean": Variable((), "servers", "E Q_3", "mean number of servers with at least 3 customers"),
    "waiting_probability": Variable((), "1", "P_w", "probability that a customer waits"),
    "simulated_time": Variable((), "time", "T", "measured time", DIAGNOSTIC),
    "n_events": Variable((), "1", "n_e", "arrivals and departures while measuring", DIAGNOSTIC),
    "n_batches": Variable((), "1", "b", "batches behind the half-widths", DIAGNOSTIC),
    "n_controls": Variable((), "1", "p", "control variates behind the half-widths", DIAGNOSTIC),
    # Stationary laws
    "q1": Variable(("q1",), "servers", "Q_1", "busy servers"),
    "q2": Variable(("q2",), "servers", "Q_2", "servers with at least 2 customers"),
    "q3": Variable(("q3",), "servers", "Q_3", "servers with at least 3 customers"),
    "q1_probability": Variable(("q1",), "1", "P(Q_1=q)", "law of the busy servers"),
    "q2_probability": Variable(("q2",), "1", "P(Q_2=q)", "law of the servers with a waiting one"),
    "q3_probability": Variable(("q3",), "1", "P(Q_3=q)", "law of the servers with two waiting"),
    "truncation_error": Variable(
        (), "1", r"\epsilon", "relative error of the mean Q2 from the cut", RELATIVE_ERROR
    ),
    "precision_met": Variable(
        (), "1", "", "whether the precision asked for was reached", DIAGNOSTIC
    ),
    "n_states": Variable((), "1", "", "states of the Markov chain", DIAGNOSTIC),
    "identity": Variable(("identity",), "1", "", "exact identity of the stationary law"),
    "identity_residual": Variable(
        ("identity",), "1", "", "violation of an exact identity", DIAGNOSTIC
    ),
    "y1_mean": Variable((), "1", "E Y_1", "mean of Y1"),
    "y2_mean": Variable((), "1", "E Y_2", "mean of Y2, mass of the boundary measure"),
    "y1_variance": Variable((), "1", r"\operatorname{Var} Y_1", "variance of Y1"),
    "y2_variance": Variable((), "1", r"\operatorname{Var} Y_2", "variance of Y2"),
    "y1_y2_covariance": Variable((), "1", r"\operatorname{Cov}(Y_1,Y_2)", "covariance"),
    "y1_y2_correlation": Variable((), "1", r"\operatorname{corr}(Y_1,Y_2)", "correlation"),
    "y1_density": Variable(("x1",), "1", "f_{Y_1}", "density of Y1"),
    "y1_cdf": Variable(("x1",), "1", r"P(Y_1\le x)", "distribution function of Y1"),
    "y2_density": Variable(("x2",), "1", "f_{Y_2}", "density of Y2"),
    "y2_cdf": Variable(("x2",), "1", r"P(Y_2\le y)", "distribution function of Y2"),
    "y2_tail": Variable(("x2",), "1", "P(Y_2>y)", "probability that Y2 is larger"),
    "joint_density": Variable(_GRID, "1", "f_{Y_1,Y_2}", "density of (Y1, Y2)"),
    "boundary_density": Variable(("x2",), "1/time", r"\nu", "density of the boundary measure"),
    "y2_small_exponent": Variable((), "1", r"\theta", "theta in P(Y2 <= y) ~ c y**theta, y to 0"),
    "y2_small_constant": Variable((), "1", "c_0", "c in P(Y2 <= y) ~ c y**theta, y to 0"),
    "y2_tail_rate": Variable((), "1", r"\beta", "b in P(Y2 > y) ~ C y exp(-b y), y large"),
    "y2_tail_constant": Variable((), "1", "C", "C in P(Y2 > y) ~ C y exp(-b y), y large"),
    "y1_cdf_error": Variable(
        (), "1", "", "largest error of the distribution function of Y1", BOUND
    ),
    "y2_cdf_error": Variable(
        (), "1", "", "largest error of the distribution function of Y2", BOUND
    ),
    # Distances
    "q2_kolmogorov": Variable((), "1", "", "Kolmogorov distance of Q2/sqrt(n) and Y2"),
    "q2_wasserstein": Variable((), "1", "W_1", "Wasserstein distance of Q2/sqrt(n) and Y2"),
    "q1_kolmogorov": Variable((), "1", "", "Kolmogorov distance of (Q1-n)/sqrt(n) and Y1"),
    "q1_wasserstein": Variable((), "1", "W_1", "Wasserstein distance of (Q1-n)/sqrt(n) and Y1"),
    # In the scale of the diffusion, of the queues and of their limit alike
    "scaled_idle_mean": Variable(
        (), "1", r"E(n-Q_1)/\sqrt n", "mean number of idle servers over sqrt(n), or -E Y1"
    ),
    "scaled_waiting_mean": Variable(
        (), "1", r"E Q_2/\sqrt n", "mean number of waiting customers over sqrt(n), or E Y2"
    ),
    "scaled_idle_variance": Variable(
        (), "1", r"\operatorname{Var} Q_1/n", "variance of the busy servers over n, or Var Y1"
    ),
    "scaled_waiting_variance": Variable(
        (), "1", r"\operatorname{Var} Q_2/n", "variance of the waiting customers over n, or Var Y2"
    ),
    "scaled_waiting_probability": Variable(
        (), "1", r"\sqrt n P_w", "probability that a customer waits times sqrt(n), or E Y2"
    ),
    "interval_reliable": Variable(
        (), "1", "", "whether the half-widths rest on enough batches", DIAGNOSTIC
    ),
    "y1_grid": Variable(("x1",), "1", "x_1", "minus idle servers over sqrt(n), of the grid"),
    "y2_grid": Variable(("x2",), "1", "x_2", "waiting customers over sqrt(n), of the grid"),
    # Fluctuations and expansion
    "y1_asymptotic_variance": Variable(
        (), "time", r"\sigma_1^2", "T times the variance of the average of Y1 over a long time T"
    ),
    "y2_asymptotic_variance": Variable(
        (), "time", r"\sigma_2^2", "T times the variance of the average of Y2 over a long time T"
    ),
    "first_coefficient": Variable((), "1", "c_1", "c1 in E Y2 - E Q2/sqrt(n) ~ c1/sqrt(n) + c2/n"),
    "second_coefficient": Variable((), "1", "c_2", "c2 in E Y2 - E Q2/sqrt(n) ~ c1/sqrt(n) + c2/n"),
    # Fluid model
    "excess_cost": Variable(_GRID, "time", "F", "solution of the Stein equation"),
    "excess_level": Variable((), "1", r"\kappa", "level of the excess in the Stein equation"),
    "curve_level": Variable(("curve",), "1", r"\kappa", "level at which paths reach the axis"),
    "gamma_curve": Variable(
        ("curve", "x1"), "1", r"\Gamma^{(\kappa)}", "height from which paths reach that level"
    ),
    "fluid_y1": Variable(_FLUID, "1", "v_1", "fluid path: minus idle servers over sqrt(n)"),
    "fluid_y2": Variable(_FLUID, "1", "v_2", "fluid path: waiting customers over sqrt(n)"),
    # Relaxation
    "spectral_gap": Variable((), "1/time", r"\gamma", "relaxation rate of smooth functions"),
    "essential_spectrum_bottom": Variable(
        (), "1/time", r"\beta^2/4", "bottom of the continuous spectrum"
    ),
    "stopped_rate": Variable(
        (), "1/time", r"\theta", "rate at which Y1 first hits 0; bounds rates in total variation"
    ),
    "chain_gap": Variable((), "1/time", r"\gamma_n", "relaxation rate of the queues, Q3 = 0"),
    "chain_edge": Variable(
        (),
        "1/time",
        r"n(1-\sqrt\lambda)^2",
        "relaxation rate of a busy server pool, infinite queue",
    ),
}
SCHEMA = Schema(
    _VARIABLES,
    {
        HALF_WIDTH: Suffix("95 % half-width", Purpose.HALF_WIDTH),
        ERROR: Suffix("bound of the error", Purpose.BOUND),
    },
)


def labelled(
    values: Mapping[str, object], coords: Mapping[str, object], attrs: Mapping[str, object]
) -> xr.Dataset:
    """Label bare arrays, see :meth:`manyserver.schema.Schema.labelled`, and say which version."""
    return with_version(SCHEMA.labelled(values, coords, attrs))
