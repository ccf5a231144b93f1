"""Which process of ``pytest -n`` runs what."""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

#: Files that play on one deployment, by the fixture that starts it: in one process it is started once.
#: (``xdist_group`` marks would say it in the files; xdist 3.8 does not see them under pytest 9.2.)
SHARING = {
    "arena": ("tests/chaos/test_canvas.py", "tests/chaos/test_ghosts.py", "tests/chaos/test_kills.py"),
    "theatre": ("tests/chaos/test_leave.py", "tests/chaos/test_preempt.py"),
    "live": (
        "tests/integration/test_fails_well.py",
        "tests/integration/test_host_live.py",
        "tests/integration/test_one_film.py",
        "tests/integration/test_wire.py",
    ),
    "quick": (
        "tests/integration/test_delivery.py",
        "tests/integration/test_host.py",
        "tests/integration/test_host_apps.py",
        "tests/integration/test_protocol.py",
    ),
}
_GROUP = {file: group for group, files in SHARING.items() for file in files}


class ByFileOrGroup(LoadFileScheduling):
    """Whole files to one process, and files that share a deployment to the same one."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return _GROUP.get(file, file)
