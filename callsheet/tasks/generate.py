"""``generate_video``: the task that applications call."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Never

from celery import Celery, Task
from celery._state import _get_active_apps, connect_on_app_finalize
from celery.app.task import Context
from celery.canvas import Signature
from celery.exceptions import Ignore

from callsheet import wiring
from callsheet.app import app
from callsheet.errors import CallsheetError, RequestError, Unreachable, UnsupportedOption
from callsheet.tasks.canvas import freeze_canvas
from callsheet.tasks.eager import EagerVideoJob, is_recorded, record_here, result_or_raise, run_here
from callsheet.tasks.job import VideoJob
from callsheet.tasks.options import read_options
from callsheet.tasks.publish import ask_rebalance, publish_all
from callsheet.tasks.submit import Extras, Submitter

NAME = "callsheet.generate_video"
POSITIONAL = ("prompt", "model")
IN_A_CHAIN = "In a chain use generate_video.si(...): it takes no result of the task before it."


def submitter() -> Submitter:
    """The submitter of this process."""
    return wiring.once(
        "submitter",
        lambda: Submitter(wiring.store(), wiring.catalog(), wiring.settings(), publish_all, ask_rebalance),
    )


class VideoTask(Task):
    """A task whose ``apply_async`` records a job.

    The broker gets a ticket only when a GPU can take it soon.
    """

    name = NAME
    typing = False  # every fault of a request is reported at once, by our own check

    @classmethod
    def bind(cls, bound_to: Celery) -> Celery:
        """Stay ours: a host's app binds every task of its registry to itself when it is finalized."""
        if bound_to is app:
            super().bind(bound_to)
        return bound_to

    def delay(self, *args: Any, **kwargs: Any) -> VideoJob | EagerVideoJob:
        """Submit a job. Arguments: prompt, model, and the fields of ``VideoRequest``.

        Raises RequestError (every fault at once), NoGpuFits, IdempotencyConflict, Unreachable; then nothing
        was stored.
        """
        return self.apply_async(args, kwargs)

    def apply_async(
        self, args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> VideoJob | EagerVideoJob:
        """Submit a job with Celery's options.

        Honoured: countdown, eta, expires, task_id, link, link_error, ignore_result and those of canvases.
        Every other option raises UnsupportedOption by name.
        """
        if app.conf.task_always_eager:
            return self.apply(args, kwargs, **options)
        try:
            return self._submit(args, kwargs, options)
        except CallsheetError as fault:
            before = options.get("group_index") or 0
            if not before:
                raise
            raise _of_member(fault, before) from fault

    def _submit(
        self, args: Sequence[Any] | None, kwargs: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> VideoJob:
        read = read_options(options, now=lambda: wiring.store().now())
        canvas = freeze_canvas(
            read.canvas, producer=options.get("producer"), ignore_result=read.ignore_result
        )
        extras = Extras(read.task_id, canvas, read.not_before, read.deadline)
        answer = submitter().submit(bind(args or (), kwargs or {}), extras)
        job: VideoJob = self.AsyncResult(read.task_id or answer.job_id)
        job.ignored = read.ignore_result
        return job

    def apply(
        self, args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> EagerVideoJob:
        """Run the job in this process, without a broker.

        Raises RequestError and the like at once; how the job ended is told by ``get()``.
        """
        read_options(
            {k: v for k, v in options.items() if k not in ("throw", "logfile", "loglevel", "retries")},
            now=lambda: 0.0,
        )
        for later in ("countdown", "eta"):
            options.pop(later, None)
        task_id = options.pop("task_id", None) or str(uuid.uuid4())
        record_here(bind(args or (), kwargs or {}), task_id)
        done = super().apply(args, kwargs, task_id=task_id, **options)
        return EagerVideoJob(done.id, done._result, done._state, traceback=done._traceback, name=NAME)

    def signature(self, *args: Any, **kwargs: Any) -> Signature:
        """Celery's signature. Its results are those of jobs that a canvas submits, now or later."""
        made = super().signature(*args, **kwargs)
        made._type = _InCanvas(self)
        return made

    subtask = signature

    def map(self, *_: Any, **__: Any) -> Never:
        """Refused: see :func:`_no_batches`."""
        _no_batches("map")

    def starmap(self, *_: Any, **__: Any) -> Never:
        """Refused: see :func:`_no_batches`."""
        _no_batches("starmap")

    def chunks(self, *_: Any, **__: Any) -> Never:
        """Refused: see :func:`_no_batches`."""
        _no_batches("chunks")

    def AsyncResult(self, task_id: str, **kwargs: Any) -> VideoJob:  # noqa: N802  Celery's own hook
        """The VideoJob of an id, as signatures, groups and chords ask for it."""
        return VideoJob(task_id, backend=self.backend, task_name=self.name, app=app, **kwargs)

    def _submit_message(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Submit what came as a message; a fault is the outcome that its sender waits for."""
        try:
            self.apply_async(args, kwargs, **_message_options(self.request))
        except Unreachable:
            raise
        except CallsheetError as fault:
            self.backend.mark_as_failure(self.request.id, fault, request=self.request)

    def run(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """A plain call: render here and now, and return the result.

        As a message, from an application that sends tasks by name and has no callsheet: submit it under the
        message's id, where its outcome is delivered.
        """
        if not self.request.called_directly and not self.request.is_eager:
            self._submit_message(args, kwargs)
            raise Ignore("submitted, or refused")
        job_id = self.request.id or str(uuid.uuid4())
        if not is_recorded(job_id):
            record_here(bind(args, kwargs), job_id)
        return result_or_raise(run_here(job_id))


def _of_member(fault: CallsheetError, before: int) -> CallsheetError:
    """The fault of a request, which says what is under way already: Celery submits a group one by one."""
    told = type(fault)(
        f"{fault}\nThis is member {before + 1} of its group or chord: the {before} before it are submitted, "
        "and go on. Cancel them (`callsheet job list`), or give each an idempotency_key and submit all again."
    )
    told.__dict__.update(fault.__dict__)
    return told


def _no_batches(name: str) -> Never:
    """Celery would call the task many times in one message.

    No job, no GPU, no record. Raises UnsupportedOption.
    """
    raise UnsupportedOption(
        f"generate_video.{name}() would run films outside of any queue; nothing was submitted. "
        "Use group(generate_video.s(...) for ...) instead: a job for each film."
    )


def _message_options(request: Context) -> dict[str, Any]:
    """What a task message says of its id and canvas, as options of ``apply_async``."""
    return {
        "task_id": request.id,
        "link": request.callbacks,
        "link_error": request.errbacks,
        "chain": request.chain,
        "chord": request.chord,
        "group_id": request.group,
        "group_index": request.group_index,
        "root_id": request.root_id,
        "parent_id": request.parent_id,
        "expires": request.expires,
        "ignore_result": request.ignore_result,
    }


class _InCanvas:
    """The task as a signature holds it."""

    def __init__(self, task: VideoTask) -> None:
        self._task = task

    def __getattr__(self, name: str) -> Any:
        return getattr(self._task, name)

    def __call__(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return self._task(*args, **kwargs)  # type: ignore[no-any-return]

    def AsyncResult(self, task_id: str, **kwargs: Any) -> VideoJob:  # noqa: N802
        job = self._task.AsyncResult(task_id, **kwargs)
        job.expected = True
        return job


def bind(args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Positional and keyword arguments as one mapping. Raises RequestError on too many or doubled ones."""
    if len(args) > len(POSITIONAL):
        raise RequestError(
            f"generate_video takes at most {len(POSITIONAL)} positional arguments ({', '.join(POSITIONAL)}), "
            f"got {len(args)}; name the others. {IN_A_CHAIN}"
        )
    given = dict(zip(POSITIONAL, args, strict=False))
    doubled = sorted(set(given) & set(kwargs))
    if doubled:
        raise RequestError(f"given twice: {', '.join(doubled)}. {IN_A_CHAIN}")
    return {**given, **kwargs}


generate_video: VideoTask = app.register_task(VideoTask())


def _join_host(host: Celery) -> None:
    """Let a host's app know our task, so that its chains, groups and workers submit to *our* broker."""
    if host is not app:
        host.tasks.setdefault(NAME, generate_video)


connect_on_app_finalize(_join_host)
for _finalized in _get_active_apps():
    if _finalized.finalized:
        _join_host(_finalized)
