"""Defaults that depend on other settings or on this machine, and where each came from."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

SERVER_URL_FILE = "server.url"  # in data_dir; a running stack writes its server's URL there
LOCAL_REDIS = "redis://127.0.0.1:6379/0"

#: Derived settings and what they derive from, in the order in which they are filled.
SOURCES: dict[str, tuple[str, ...]] = {
    "data_dir": (),
    "broker_url": ("data_dir",),
    "store_url": ("data_dir", "broker_url"),
    "storage_url": ("data_dir",),
    "models_dir": ("data_dir",),
}


def follows(name: str, changed: Collection[str]) -> bool:
    """Whether a derived setting has to be derived again after ``changed`` changed."""
    return any(source in changed for source in SOURCES.get(name, ()))


def derive(
    values: Mapping[str, Any], origins: Mapping[str, str], env: Mapping[str, str] | None = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """``values`` and ``origins`` with every derived setting that is missing filled in.

    ``env`` (default: the process's) is asked for XDG_DATA_HOME.
    """
    full, where = dict(values), dict(origins)

    def fill(name: str, value: object, origin: str) -> None:
        if name not in full:
            full[name], where[name] = value, origin

    fill("data_dir", *_data_dir(os.environ if env is None else env))
    data_dir = Path(full["data_dir"])
    fill("broker_url", *_broker_url(data_dir))
    fill("store_url", full["broker_url"], "default: broker_url")
    fill("storage_url", (data_dir / "films").as_uri(), "default: <data_dir>/films")
    fill("models_dir", data_dir / "models", "default: <data_dir>/models")
    return full, where


def _data_dir(env: Mapping[str, str]) -> tuple[Path, str]:
    home = Path(env.get("XDG_DATA_HOME", ""))
    if home.is_absolute():  # the XDG rule: a relative path is to be ignored
        return home / "callsheet", "default: XDG_DATA_HOME"
    return Path.home() / ".local" / "share" / "callsheet", "default"


def _broker_url(data_dir: Path) -> tuple[str, str]:
    """The URL of the stack that runs here, else of a plain local Redis."""
    path = data_dir / SERVER_URL_FILE
    try:
        return path.read_text(encoding="utf-8").strip() or LOCAL_REDIS, f"default: {path}"
    except (OSError, UnicodeDecodeError):
        return LOCAL_REDIS, f"default: no {path}"
