"""Films in object storage: ``s3://``, ``file://`` and ``memory://`` as one class."""
