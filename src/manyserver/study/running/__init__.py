"""Computing the points of units, watched."""
