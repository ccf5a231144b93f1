"""The diffusion models that can be served, and the requests that fit them.

::

    models.toml   the built-in models           listing.py   Catalog, load_catalog
    entries.py    a TOML table to a ModelSpec   validate.py  arguments to a VideoRequest
    reading.py    single arguments, read strictly
"""

from __future__ import annotations

from callsheet.catalog.listing import Catalog, load_catalog

__all__ = ["Catalog", "load_catalog"]
