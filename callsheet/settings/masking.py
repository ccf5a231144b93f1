"""Hide what must not be read in a terminal or a log: passwords inside URLs, and whole secret values."""

from __future__ import annotations

import re

MASK = "***"

_SEPARATOR = re.compile(r";(?=[\w+.-]+://)")  # Celery joins the URLs of several servers with ";"
_PASSWORD = re.compile(
    r"^((?:[\w+.-]+://)?[^:@/]*):(?!//)(.*)@", re.DOTALL
)  # up to the last "@": passwords hold anything
_QUERY = re.compile(r"([?&][^=&]*(?:passw|secret|token)[^=&]*=)[^&#]*", re.IGNORECASE)


def mask_url(url: str) -> str:
    """Replace passwords in one URL, or several joined with ``;``: ``redis://user:***@host``.

    Works on malformed URLs too, since error messages quote those; rather hides too much than too little.
    """
    return ";".join(_mask_one(part) for part in _SEPARATOR.split(url))


def _mask_one(url: str) -> str:
    return _QUERY.sub(rf"\1{MASK}", _PASSWORD.sub(rf"\1:{MASK}@", url))
