"""Files that are kept: points, units, and the work that later points can use."""
