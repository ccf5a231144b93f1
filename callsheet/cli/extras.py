"""Which of the packages that render films are installed here. They are looked up, never imported."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from callsheet.errors import Refused

#: What the extra ``worker`` brings: import name -> distribution.
WORKER = {
    "torch": "torch",
    "diffusers": "diffusers",
    "transformers": "transformers",
    "accelerate": "accelerate",
    "safetensors": "safetensors",
    "av": "av",
    "numpy": "numpy",
    "PIL": "pillow",
}
INSTALL = "pip install 'callsheet[worker]'"


def versions(packages: Mapping[str, str] = WORKER) -> dict[str, str]:
    """Version of each package (import name -> distribution); "" for one that is not installed."""
    return {name: _version(name, package) for name, package in packages.items()}


def _version(name: str, package: str) -> str:
    if find_spec(name) is None:
        return ""
    try:
        return version(package)
    except PackageNotFoundError:
        return "?"


def require_worker(what: str, packages: Mapping[str, str] = WORKER) -> None:
    """Raises Refused when this machine cannot render films."""
    missing = [name for name, found in versions(packages).items() if not found]
    if missing:
        raise Refused(f"{what} needs {', '.join(missing)}; nothing was started. Install with: {INSTALL}")
