"""The diffusion, and its stationary law."""
