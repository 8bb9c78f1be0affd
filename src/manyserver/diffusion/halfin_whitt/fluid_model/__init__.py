"""The fluid model, and what the Stein and Lyapunov methods make of it."""
