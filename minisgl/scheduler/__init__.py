"""Scheduling: which requests are computed in each step."""
