"""Frozen records: what the rooms hand to each other. Standard library only."""
