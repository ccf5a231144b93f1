"""Which process of ``pytest -n`` runs what."""

from __future__ import annotations

from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]


class ByGroupOrFile(LoadGroupScheduling):
    """Whole files to one process, as ``--dist loadfile`` does; files of one ``xdist_group`` to the same.

    Files that play on one deployment are a group: it is started once. Takes ``--dist loadgroup``.
    """

    def _split_scope(self, nodeid: str) -> str:
        found: str = super()._split_scope(nodeid)
        return found if found != nodeid else nodeid.partition("::")[0]
