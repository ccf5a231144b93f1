"""Background saves of a running attempt: at most one under way, and none on the denoising thread.

That thread only copies the step's tensors to the CPU; serialising and sending happen beside it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from callsheet.errors import CallsheetError, Fenced
from callsheet.workers.interval import GUESSED_SAVE_S, interval_s
from callsheet.workers.replay import NotReplayable, Snapshot

log = logging.getLogger(__name__)

JOIN_S = 5.0  # how long the end of an attempt waits for a save that is under way

Take = Callable[[], Snapshot]
Save = Callable[[Snapshot, float], None]


@dataclass
class SaveCosts:
    """Seconds that one save of each model took last; kept from job to job."""

    by_model: dict[str, float]

    def of(self, model: str) -> float:
        """The last one, or a guess."""
        return self.by_model.get(model, GUESSED_SAVE_S)


class Saver:
    """Saves of one attempt. :meth:`step_ended` is called by the denoising thread."""

    def __init__(
        self,
        save: Save,
        *,
        model: str,
        costs: SaveCosts,
        mean_s_between_losses: float,
        fixed_interval_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``fixed_interval_s``: instead of the computed one; 0 = compute it."""
        self._save, self._model, self._costs = save, model, costs
        self._losses_s, self._fixed_s, self._clock = mean_s_between_losses, fixed_interval_s, clock
        self._saved_at = clock()
        self._thread: threading.Thread | None = None
        self._impossible = ""

    @property
    def interval_s(self) -> float:
        """Seconds between two saves, as things are now."""
        return self._fixed_s or interval_s(self._costs.of(self._model), self._losses_s)

    def step_ended(self, take: Take, useful_s: Callable[[], float]) -> None:
        """Begin a save when one is due. A pipeline that cannot be saved is asked once."""
        if self._impossible or self._busy() or self._clock() - self._saved_at < self.interval_s:
            return
        began = self._clock()
        try:
            snapshot = take()
        except NotReplayable as refusal:
            self._impossible = str(refusal)
            log.warning("no checkpoints of %s: %s", self._model, refusal)
            return
        self._saved_at = began
        copied_s = self._clock() - began
        self._thread = threading.Thread(
            target=self._run, args=(snapshot, useful_s(), copied_s), name="callsheet-saver", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """The attempt ends: wait a moment for a save that is under way. Fences keep a late one harmless."""
        if self._thread is not None:
            self._thread.join(JOIN_S)

    def _busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _run(self, snapshot: Snapshot, useful_s: float, copied_s: float) -> None:
        began = self._clock()
        try:
            self._save(snapshot, useful_s)
        except Fenced as fault:
            log.info("%s", fault)
        except CallsheetError as fault:
            log.warning("step %s was not saved, the job goes on: %s", snapshot.step, fault)
        except Exception:
            log.exception("step %s was not saved, the job goes on", snapshot.step)
        self._costs.by_model[self._model] = copied_s + self._clock() - began
