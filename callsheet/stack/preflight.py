"""What is looked at before anything is started."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

from callsheet.errors import CallsheetError, Refused, SettingsError
from callsheet.settings import Settings, to_env

DISCOVERY_S = 60.0  # a cold disk and a slow driver


def find_workers(settings: Settings) -> list[str]:
    """Names of the workers that the launcher will start, from its own program: this one loads no worker code.

    Raises SettingsError when there is no GPU.
    """
    command = [sys.executable, "-m", "callsheet.workers", "gpus", "-o", "json"]
    env = {**os.environ, **to_env(settings)}
    try:
        said = subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=DISCOVERY_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise CallsheetError(
            f"NVML did not list this machine's GPUs within {DISCOVERY_S:g} s; nothing was started. "
            "Does `nvidia-smi` answer?"
        ) from None
    if said.returncode == SettingsError.exit_code:
        raise SettingsError(said.stderr.strip().removeprefix("Error: "))
    if said.returncode != 0:
        raise CallsheetError(f"`python -m callsheet.workers gpus` failed:\n{said.stderr.strip()}")
    return [f"{device['name']}@{socket.gethostname()}" for device in json.loads(said.stdout)]


def check_port(settings: Settings) -> None:
    """Raise Refused when somebody else has Flower's port, whose answers would look like ours."""
    family = socket.AF_INET6 if ":" in settings.flower_host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.flower_host, settings.flower_port))
        except OSError as error:
            raise Refused(
                f"Flower cannot listen on {settings.flower_host}:{settings.flower_port} ({error.strerror}); "
                "nothing was started. Set CALLSHEET_FLOWER_PORT to a free port, or 0 for no Flower"
            ) from None
