"""Why a run cannot be saved, or cannot go on from a checkpoint."""

from __future__ import annotations

from callsheet.errors import Refused


class NotReplayable(Refused):
    """A pipeline's run cannot be saved, or not be resumed. Its jobs still run, but from step 0."""


class CheckpointRefused(Refused):
    """A checkpoint is damaged, of an unknown format, or of another film. The job starts again at step 0."""


class UnknownFormat(CheckpointRefused):
    """A checkpoint of a format that this release does not know, perhaps a newer one's. It may be whole."""
