"""Every error that callsheet raises on purpose.

::

    CallsheetError                     exit code of the command line
    ├── SettingsError                  2   a setting is wrong; nothing was started
    ├── RequestError                   2   a request is wrong; nothing was stored
    │   └── NoGpuFits                  6   no GPU class of this deployment is large enough
    ├── BadQueueName                   2   a queue name that the rule of routing/queues.py does not make
    ├── Refused                        6   the state of things forbids it
    │   ├── IdempotencyConflict        6   the key is known, with another body
    │   ├── NotAdmitted                6   its tier would let it wait longer than it promises
    │   ├── UnsupportedOption          2   a Celery option that a job cannot honour
    │   └── AlreadyRunning             6   another stack holds the data folder
    ├── JobNotFound                    3   no record under that id
    ├── GpuNotFound                    3   no GPU of that name is alive or has an order
    ├── Unreachable                    5   broker or store do not answer
    ├── StorageError                   1   object storage refused, is full or not writable
    │   ├── ObjectNotFound             3   no object at that URL
    │   └── CheckpointDamaged          1   a checkpoint's bytes are not those that were written
    ├── ModelError                     1   model files are missing, truncated or of another kind
    ├── JobFailed                      1   what ``get()`` raises for a failed job
    │   └── JobExpired                 1   its deadline passed before it started
    ├── JobCancelled                   1   what ``get()`` raises for a cancelled job
    ├── Fenced                         1   a newer attempt owns the job; this one writes nothing
    └── WaitTimeout                    4   the job goes on, the caller stopped waiting

Each message says what happened, what that means for the job, and what to do next. All take one string, so
that they survive Celery's JSON round trip.
"""

from __future__ import annotations


class CallsheetError(Exception):
    """Root of the tree. ``exit_code`` is what the command line ends with."""

    exit_code = 1


class SettingsError(CallsheetError):
    """A setting is wrong. Names the setting, its value, what is allowed and where the value came from."""

    exit_code = 2


class RequestError(CallsheetError, ValueError):
    """A request is wrong. Lists every fault in one message; nothing was stored or published."""

    exit_code = 2


class NoGpuFits(RequestError):
    """No GPU class of this deployment has the memory that the job needs."""

    exit_code = 6


class BadQueueName(CallsheetError, ValueError):
    """A queue name, or a part of one, that the rule of ``routing.queues`` does not make."""

    exit_code = 2


class Refused(CallsheetError):
    """The state of things forbids what was asked."""

    exit_code = 6


class IdempotencyConflict(Refused):
    """The idempotency key belongs to a job with another body."""


class NotAdmitted(Refused):
    """The job would wait longer than its tier promises; nothing was stored.

    ``retry_after_s``: when there will be room if nothing more comes; 0 = not known (it crossed a process).
    """

    def __init__(self, message: str = "", *, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class UnsupportedOption(Refused, TypeError):
    """A Celery option that a video job cannot honour, with what to use instead."""

    exit_code = 2


class AlreadyRunning(Refused):
    """Another stack or server holds the data folder."""


class JobNotFound(CallsheetError, LookupError):
    """No job is recorded under that id (never submitted, or past its retention)."""

    exit_code = 3


class ModelNotFound(CallsheetError, LookupError):
    """No model of that name is in the catalog.

    Raised where a model is looked up, not where a job asks for one.
    """

    exit_code = 3


class GpuNotFound(CallsheetError, LookupError):
    """No GPU of that name is alive, and none has an order."""

    exit_code = 3


class Unreachable(CallsheetError, ConnectionError):
    """Broker or store did not answer in time."""

    exit_code = 5


class StorageError(CallsheetError, OSError):
    """Object storage refused, is full, or is not writable. Nothing half-written is left."""


class ObjectNotFound(StorageError):
    """No object at that URL: it was never written, or was deleted."""

    exit_code = 3


class CheckpointDamaged(StorageError):
    """A checkpoint's bytes are not those that were written: an older one is used, or step 0."""


class ModelError(CallsheetError):
    """Model files are missing, truncated, or not a diffusers pipeline. Names the path and the next step."""


class JobFailed(CallsheetError):
    """The job failed; raised by ``get()`` and ``wait()``."""


class JobExpired(JobFailed):
    """The job's deadline passed before it started."""


class JobCancelled(CallsheetError):
    """The job was cancelled; raised by ``get()`` and ``wait()``."""


class Fenced(CallsheetError):
    """A newer attempt owns the job: whatever this attempt still had to write is not written."""


class WaitTimeout(CallsheetError, TimeoutError):
    """The wait ended, the job did not."""

    exit_code = 4
