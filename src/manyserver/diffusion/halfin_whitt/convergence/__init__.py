"""How the finite systems meet the diffusion."""
