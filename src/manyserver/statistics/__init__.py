"""Estimates and fits, with their errors."""
