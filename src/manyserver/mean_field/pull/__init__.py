"""PULL with several routers, in the limit: fixed points, trajectories, and what is of order 1/n."""

from manyserver.mean_field.pull.asymptotics import pull_asymptotics
from manyserver.mean_field.pull.fixed_point import checked_split, routed_fixed_point
from manyserver.mean_field.pull.path import follow_routers, start_messages
from manyserver.mean_field.pull.split import slowest_split

__all__ = [
    "checked_split",
    "follow_routers",
    "pull_asymptotics",
    "routed_fixed_point",
    "slowest_split",
    "start_messages",
]
