"""Speed and size, measured: ``python -m benchmarks`` prints one JSON document."""
