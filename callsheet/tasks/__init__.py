"""The Celery tasks, what a job looks like to its caller, and publishing."""
