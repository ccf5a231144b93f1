"""The thread that a keeper runs in."""

from __future__ import annotations

import logging
import threading

from callsheet.errors import CallsheetError, Unreachable
from callsheet.workers.keeper import Keeper

log = logging.getLogger(__name__)


class KeeperThread(threading.Thread):
    """Runs a keeper until it is told to stop.

    A store that is away is asked again; the job goes on meanwhile.
    """

    def __init__(self, keeper: Keeper, pause_s: float = 0.5) -> None:
        super().__init__(name="callsheet-keeper", daemon=True)
        self._keeper, self._pause_s = keeper, pause_s
        self._over = threading.Event()

    def run(self) -> None:
        """Look, wait, look."""
        away = False
        while not self._over.is_set():
            try:
                due_s = self._keeper.look()
                if away:
                    log.info("the store answers again")
                away = False
            except Unreachable as fault:
                if not away:
                    log.warning(
                        "%s; the running job goes on, its lease is renewed when the store is back", fault
                    )
                away, due_s = True, self._pause_s
            except CallsheetError:
                log.exception("the keeper's round failed")
                due_s = self._pause_s
            self._over.wait(due_s)

    def stop(self) -> None:
        """Stop and take the GPU off the list."""
        self._over.set()
        self.join(timeout=5.0)
        try:
            self._keeper.leave()
        except Unreachable:
            log.warning("the store is away: the GPU leaves the list when its heartbeat runs out")
