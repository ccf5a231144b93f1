"""Checks and set-up of this repository; not part of the package."""
