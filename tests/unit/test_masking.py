"""Passwords inside URLs never show."""

from __future__ import annotations

import pytest

from callsheet.settings import mask_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://host:6379/0", "redis://host:6379/0"),
        ("redis://user:pw@host:6379/0", "redis://user:***@host:6379/0"),
        ("redis://:pw@host", "redis://:***@host"),
        ("redis://:p@ss:w#rd/x@host", "redis://:***@host"),
        ("user:pw@host", "user:***@host"),
        ("redis://user@host", "redis://user@host"),
        ("sentinel://:a@h1:1;sentinel://:b@h2:2", "sentinel://:***@h1:1;sentinel://:***@h2:2"),
        ("sentinel://u:p@w@h1:1,h2:2/0?service=s", "sentinel://u:***@h1:1,h2:2/0?service=s"),
        ("sentinel://h1:1,h2:2/0?service=s", "sentinel://h1:1,h2:2/0?service=s"),
        (
            "sentinel://h1:1/0?service=s&sentinel_username=u&sentinel_password=pw",
            "sentinel://h1:1/0?service=s&sentinel_username=u&sentinel_password=***",
        ),
        ("redis://:a;b@host", "redis://:***@host"),
        ("redis://host/0?password=pw&db=1", "redis://host/0?password=***&db=1"),
        ("redis://:two\nlines@host", "redis://:***@host"),
        ("unix:///run/redis.sock", "unix:///run/redis.sock"),
        ("", ""),
    ],
)
def test_mask_url(url: str, shown: str) -> None:
    assert mask_url(url) == shown
