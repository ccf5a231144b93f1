"""What a setting may be: each rule has a text for people and a test that answers what is wrong.

A rule sees values of the right type only (``values.py`` looks after types).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from callsheet.records.gpus import GPU_CLASSES
from callsheet.settings import urls

STORAGE_SCHEMES = ("s3", "file", "memory")

_DECLARED = re.compile(r"(?P<name>[a-z0-9]+(?:-[a-z0-9]+)*)(?::(?P<vram>[1-9]\d{0,3}))?")


@dataclass(frozen=True, slots=True)
class Rule:
    """What is allowed, in words, and ``fault(value)``: "" for a fine value, else what is wrong with it."""

    text: str
    fault: Callable[[Any], str]


def number(low: float, high: float, text: str = "") -> Rule:
    """A finite number of ``low`` to ``high``, both included."""
    # NaN fails every comparison, so it is refused here too
    return Rule(text or f"{low:g} to {high:g}", lambda v: "" if low <= v <= high else "is out of range")


def one_of(*names: str) -> Rule:
    """One of a few words."""
    return Rule(", ".join(names), lambda v: "" if v in names else "is none of the allowed words")


def anything(text: str) -> Rule:
    """Any value of the type; ``text`` says what it is."""
    return Rule(text, lambda _: "")


def some_text(text: str) -> Rule:
    """A string that is not blank and holds no white space."""
    return Rule(text, lambda v: "" if v and not re.search(r"\s", v) else "is empty or holds white space")


def path_or_empty(text: str) -> Rule:
    """An existing file, or nothing."""
    return Rule(text, lambda v: "" if not v or Path(v).is_file() else "is no file")


def broker_url() -> Rule:
    """URL of a Redis server, or of the Sentinels that know it, for Celery or the store."""
    text = (
        "redis://[user:password@]host[:port][/db], rediss://...[?ssl_ca_certs=file], unix:///path[?db=n], "
        "redis+socket:///path[?virtual_host=n], sentinel://[user:password@]host:port,host:port,...[/db]"
        "?service=name[&sentinel_username=...][&sentinel_password=...] (memory:// for tests)"
    )
    return Rule(text, urls.fault)


def storage_url() -> Rule:
    """Where films and checkpoints go."""
    return Rule("s3://bucket[/prefix], file:///absolute/folder, memory://", _storage_fault)


def _storage_fault(url: str) -> str:
    fault, host, path = _split(url, STORAGE_SCHEMES)
    if fault:
        return fault
    if url.startswith("s3:") and not host:
        return "names no bucket"
    if url.startswith("file:") and (host or not path.startswith("/")):
        return "is no absolute folder: three slashes follow file:"
    return ""


def endpoint_url() -> Rule:
    """URL of an S3 server, or nothing for Amazon's."""
    return Rule("empty, https://host[:port] or http://host[:port]", _endpoint_fault)


def _endpoint_fault(url: str) -> str:
    if not url:
        return ""
    fault, host, _ = _split(url, ("http", "https"))
    return fault or ("" if host else "names no host")


def _split(url: str, schemes: Iterable[str]) -> tuple[str, str, str]:
    """(fault, host, path) of one URL; the fault never repeats the URL, which may hold a password."""
    scheme, found, _ = url.partition("://")
    if not found or scheme not in schemes:
        return "has no allowed scheme", "", ""
    try:
        parts = urlsplit(url)
        _ = parts.port  # parsed only when asked for
    except ValueError:
        return "is no URL (percent-encode special characters of the password)", "", ""
    return "", parts.hostname or "", parts.path


def declared_gpus() -> Rule:
    """A list of GPU classes, each with its memory when that is not the usual one."""
    return Rule(f"a comma-separated list of class or class:GiB; classes: {_class_names()}", _declared_fault)


def _declared_fault(items: tuple[str, ...]) -> str:
    for item in items:
        match = _DECLARED.fullmatch(item)
        if match is None:
            return f"holds {item!r}, which is neither class nor class:GiB"
        if fault := _class_fault(match["name"]):
            return fault
    return ""


def gpu_class_names() -> Rule:
    """A list of GPU classes."""
    check = lambda items: next(filter(None, map(_class_fault, items)), "")  # noqa: E731
    return Rule(f"a comma-separated list of: {_class_names()}", check)


def _class_fault(name: str) -> str:
    return "" if any(name == known.name for known in GPU_CLASSES) else f"holds the unknown GPU class {name!r}"


def _class_names() -> str:
    return ", ".join(known.name for known in GPU_CLASSES)
