"""callsheet: a scheduler of video-generation jobs over a fleet of unlike GPUs, as a Celery deployment.

>>> from callsheet import generate_video
>>> job = generate_video.delay(prompt="a cat on the grass", model="tiny-wan")
>>> job.wait(progress=True)
>>> job.download("cat.mp4")

Names load on first use, so that ``import callsheet`` and the command line stay quick. The Celery app is
``callsheet.app.app``: a public name ``app`` would be the module of that name as soon as that was imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callsheet._version import __version__

if TYPE_CHECKING:
    from callsheet import errors
    from callsheet.client import Client
    from callsheet.tasks.generate import generate_video
    from callsheet.tasks.job import VideoJob

__all__ = ["Client", "VideoJob", "__version__", "errors", "generate_video"]

_HOMES = {
    "Client": "callsheet.client",
    "VideoJob": "callsheet.tasks.job",
    "generate_video": "callsheet.tasks.generate",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "errors":
        return import_module("callsheet.errors")
    if name not in _HOMES:
        raise AttributeError(f"module 'callsheet' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
