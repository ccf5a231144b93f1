"""Examples of callsheet; not part of the package."""
