"""Benchmarks, all run by ``uv run --group benchmark python -m benchmarks``."""
