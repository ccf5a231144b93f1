"""The memory: one Protocol, a Redis store and an in-memory twin that pass the same tests."""
