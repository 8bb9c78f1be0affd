"""The limit under policies for which jobs are followed: whose turn it is, or the work left."""

from manyserver.mean_field.followed.turns import turns_fixed_point
from manyserver.mean_field.followed.work import work_fixed_point

__all__ = ["turns_fixed_point", "work_fixed_point"]
