"""What each tier is owed: the order of service, guaranteed shares, protection."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TierRule:
    """Service class. Tiers are served in the order in which they are listed."""

    name: str
    share: float = 0.0  # guaranteed fraction of the GPUs while it is demanded; the rest is lent
    preempts: bool = False  # its waiting jobs may take a GPU from a tier that yields
    yields: bool = False  # its running jobs may be asked for their GPU
    max_preemptions: int = 3  # of one job; at that many it is protected
    longest_wait_s: float = 0.0  # no admitted job waits longer; 0 = no bound
    patience_s: float = 0.5  # how far behind its start tag a job stands per second of its work


PRO = TierRule("pro", share=0.9, preempts=True, patience_s=0.5)
FREE = TierRule("free", share=0.05, yields=True, longest_wait_s=3600.0, patience_s=0.4)
TIERS = (PRO, FREE)
