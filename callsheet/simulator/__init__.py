"""Replays traffic through the same policy and controllers that run live, on a virtual clock. No Celery, no Redis."""
