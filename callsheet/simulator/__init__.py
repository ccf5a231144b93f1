"""Replays traffic through policy and controllers on a virtual clock, without Celery and Redis."""
