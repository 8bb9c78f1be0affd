"""What fits and figures have in common: the curves of a cube, and what a study must supply."""
