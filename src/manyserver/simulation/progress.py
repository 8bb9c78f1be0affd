"""Where a kernel is: the entries of its array `progress`, which it changes in place."""

__all__ = ["LENGTH", "NEVER", "PERIOD", "PIECE", "REMAINING", "SINCE", "STEP", "WAIT"]

PIECE = 0
REMAINING = 1
"""Steps that remain in the piece."""
WAIT = 2
"""Steps until the next sample."""
LENGTH = 3
"""Steps in a piece, where all have as many."""
PERIOD = 4
"""Steps from one sample to the next; 0 if there is one at the end of each piece."""
STEP = 5
"""Next step of the block of steps that are drawn ahead, where they are."""
SINCE = 6
"""Steps since sums over them were added up, where they are."""

NEVER = 2**63
"""Steps until the next sample, if there is none."""
