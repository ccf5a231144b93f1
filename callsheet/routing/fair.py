"""Fair turns of the tenants inside a tier: start-time fair queueing on GPU-seconds, with an allowance.

A tier has a virtual time, which runs at least as fast as the clock. A job's start tag is the virtual time of
its submit, or the end of its tenant's turns before it, whichever is later; the job moves that end on by

    charge = work / (weight x allowance x capacity)

seconds, with its work in seconds on the reference GPU and the fleet's capacity in those per second. When a
job is released whose tag lies ahead, virtual time jumps to it. So

* a tenant within its allowance, a fraction of the fleet, waits as long as everybody who came when it came;
* a tenant beyond it waits for its own turns, and not the others for them: a thousand jobs at once delay
  another tenant's first one by no more than the allowance;
* tenants that are all beyond it share by weight, whatever they submit.

Source: start-time fair queueing (Goyal, Vin and Cheng, 1996); the floor by the clock is ours.
"""

from __future__ import annotations

ALLOWANCE = 0.25  # of the fleet, that one tenant of weight 1 may use before its jobs are spaced


def charge_s(work_s: float, capacity: float, *, weight: float = 1.0, allowance: float = ALLOWANCE) -> float:
    """How far a job moves its tenant's virtual time, seconds; 0 when nothing is known of the fleet."""
    per_s = weight * allowance * capacity
    return work_s / per_s if per_s > 0 else 0.0


def delay_s(work_s: float, patience_s: float) -> float:
    """How far behind its start tag a job stands in its backlog: short ones go a little before long ones.

    0 for each second of work is first come, first served; the shortest-first rule that lowers mean waits most
    starves the long ones. A constant in between bounds how far a job can be overtaken.
    """
    return patience_s * work_s
