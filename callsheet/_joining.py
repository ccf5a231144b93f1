"""``import callsheet`` is enough for a host's Celery app to know our task, and loads no Celery for that.

A host's worker that finds ``generate_video`` in a chain must know the task, or it would send it to the host's
own broker. Celery announces every app that is finalized; until Celery is imported there is nothing to
announce, so its import is watched. (Celery takes a quarter of a second, which ``callsheet -h`` has not got.)
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

STATE = "celery._state"  # the module in which Celery keeps its apps
OURS = "callsheet"  # name of our own app, which knows its tasks


def watch() -> None:
    """Let every app of this process know our task: those that live, and those to come."""
    state = sys.modules.get(STATE)
    if state is None:
        sys.meta_path.insert(0, _Watcher())
    else:
        _connect(state)


def _connect(state: ModuleType) -> None:
    state.connect_on_app_finalize(_load)
    for app in list(state._get_active_apps()):
        if app.finalized:
            _load(app)


def _load(app: Any) -> None:
    if app.main != OURS:
        import_module("callsheet.tasks.generate")


class _Watcher:
    """Sees one module be imported, once."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        if name != STATE:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path)
        if spec is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


class _Loader:
    """The module's own loader, which tells when it is done."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def exec_module(self, module: ModuleType) -> None:
        self._own.exec_module(module)
        _connect(module)
