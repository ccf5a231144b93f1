"""What one process works with, made once on first use: settings, catalog, store, artifacts."""
