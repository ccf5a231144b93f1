"""One part of the stack alone, for a Procfile or a unit file: the same commands as ``callsheet up`` runs."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from typing import NoReturn

from callsheet.errors import SettingsError, Unreachable
from callsheet.processes import Supervisor
from callsheet.settings import SERVER_URL_FILE, Settings, load, mask_url
from callsheet.stack.embedded import NAME as SERVER
from callsheet.stack.embedded import embedded_server
from callsheet.stack.plan import plan
from callsheet.stack.up import needs_server

SERVER_S = 60.0  # how long a part waits for the embedded server
POLL_S = 0.1


def run_part(name: str, settings: Settings) -> None:
    """Run one part; all but the server become their command and do not come back.

    Raises SettingsError for an unknown part, Unreachable when the embedded server does not come up.
    """
    known = [SERVER, *(child.name for child in plan(settings, host=""))]
    if name not in known:
        raise SettingsError(f"There is no part {name!r}; the parts are: {', '.join(known)}")
    if name == SERVER:
        _run_server(settings)
    else:
        _become(name, _with_server(settings) if needs_server(settings) else settings)


def _run_server(settings: Settings) -> None:
    if not needs_server(settings):
        print(f"{mask_url(settings.broker_url)} is used: no server of our own to run", file=sys.stderr)
        signal.pause()  # a Procfile runner ends everything when one of its commands ends
        return
    with embedded_server(settings.data_dir) as server:
        Supervisor([server.child()], name=SERVER).run()


def _with_server(settings: Settings) -> Settings:
    """The settings once the embedded server of this data folder has said where it is."""
    deadline = time.monotonic() + SERVER_S
    while not (settings.data_dir / SERVER_URL_FILE).exists():
        if time.monotonic() > deadline:
            raise Unreachable(
                f"No server of {settings.data_dir} came up within {SERVER_S:g} s. Start it with "
                f"`python -m callsheet.stack {SERVER}`, or set CALLSHEET_BROKER_URL"
            )
        time.sleep(POLL_S)
    return load()


def _become(name: str, settings: Settings) -> NoReturn:
    (child,) = [child for child in plan(settings, host=socket.gethostname()) if child.name == name]
    os.execvpe(child.argv[0], child.argv, {**os.environ, **child.env})  # noqa: S606
