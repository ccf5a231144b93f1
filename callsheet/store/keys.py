"""Every key of the store, below one prefix (``callsheet:``).

Nothing else builds a key: the Lua scripts get these patterns too.

============================  ======  =====================================  =================================
key                           type    holds                                  lives, or owner
============================  ======  =====================================  =================================
``job:{id}``                  hash    the record, see ``codec.py``           retention after its end
``job:{id}:events``           stream  transitions, the newest 200            as the job
``job:{id}:attempts``         hash    number -> the attempt's row (JSON)      as the job
``job:{id}:aliases``          hash    other name -> its canvas (JSON)        as the job
``job:{id}:delivered``        set     parts of the delivery that are done    as the job
``alias:{name}``              string  id of the job that the name means      as the job
``idem:{tenant}:{key}``       hash    job_id, body_hash                      as the job
``backlog:{queue}``           zset    PENDING jobs by start tag              release
``published:{queue}``         zset    QUEUED jobs by time of release         claim, heal
``held``                      zset    HELD jobs by ``not_before``            wake
``deadlines``                 zset    jobs not started, by deadline          wake
``running``                   zset    RUNNING jobs by end of lease           reap
``undelivered``               set     ended jobs with an outcome to deliver  mark_delivered
``jobs:all``                  zset    every job by ``created_at``            trimmed as ``ended`` says
``jobs:{state}``              zset    the same of one state                  trimmed as ``ended`` says
``jobs:tenant:{tenant}``      zset    the same of one tenant                 trimmed as ``ended`` says
``ended``                     zset    [id, tenant] (JSON) by time of end     each end trims those past
``quotas``                    hash    queue -> tickets that may be out       set_quotas
``routes``                    hash    backlog -> queues of its tickets       set_quotas
``offered``                   hash    queue -> work ever submitted, seconds  submit; few, by the name rule
``works``                     hash    queue -> work in its backlog, seconds  every transition; as ``offered``
``leads``                     hash    tier -> virtual time before the clock  release, assign; few
``tenant:{tier}:{tenant}``    string  virtual time of its next turn          a day after its last job
``desired``                   hash    GPU -> what its worker serves (JSON)   desire; dropped with its GPU
``memory:{name}``             string  what a controller remembers (JSON)     a quarter of an hour
``plans``                     list    [at, plan] (JSON) of the last ticks    ten minutes, the newest 120
``queues``                    set     every queue name that ever had a job   submit; few, by the name rule
``gpu:{name}``                hash    a GPU as its worker registered it      its heartbeat (``ttl_s``)
``gpu:{name}:order``          hash    an operator's word: cordoned, draining  order_gpu, until lifted
``gpu_orders``                set     names of GPUs with one                 order_gpu
``gpus``                      set     names of GPUs                          gpus drops dead names
``tick:{controller}``         hash    number, token, busy_until              a day after its last tick
``tick:{controller}:report``  string  report of the last tick (JSON)         three minutes
``urgent``                    string  a look of the controllers is due       take_urgent; 2 s
``witness``                   string  store time when it last answered       renew, claim, reap, ticks
``away``                      hash    gap_s, returned: the last absence      as ``witness``
``losses``                    hash    crashes, gpu_s: how often workers die  renew, reap
``erasing``                   zset    erased jobs by time of erasure         erased
``op:{token}``                string  first answer of a verb (JSON)          120 s
============================  ======  =====================================  =================================

While a job is active, its own keys belong to the verbs of its state and have no TTL. A tenant stands
percent-encoded in keys (:func:`tag`), so that no tenant and key can meet another pair's key.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from callsheet.records.states import State

PREFIX = "callsheet:"

#: Name of the key function -> its pattern. The only place where the layout is written.
PATTERNS = {
    "job": "job:{}",
    "events": "job:{}:events",
    "attempts": "job:{}:attempts",
    "aliases": "job:{}:aliases",
    "delivered": "job:{}:delivered",
    "alias": "alias:{}",
    "idem": "idem:{}:{}",
    "backlog": "backlog:{}",
    "published": "published:{}",
    "held": "held",
    "deadlines": "deadlines",
    "running": "running",
    "undelivered": "undelivered",
    "jobs_all": "jobs:all",
    "jobs_state": "jobs:{}",
    "jobs_tenant": "jobs:tenant:{}",
    "ended": "ended",
    "quotas": "quotas",
    "routes": "routes",
    "offered": "offered",
    "works": "works",
    "leads": "leads",
    "tenant": "tenant:{}:{}",
    "desired": "desired",
    "memory": "memory:{}",
    "plans": "plans",
    "queues": "queues",
    "gpu": "gpu:{}",
    "gpu_order": "gpu:{}:order",
    "gpu_orders": "gpu_orders",
    "gpus": "gpus",
    "tick": "tick:{}",
    "report": "tick:{}:report",
    "urgent": "urgent",
    "witness": "witness",
    "away": "away",
    "losses": "losses",
    "erasing": "erasing",
    "op": "op:{}",
}


def tag(tenant: str) -> str:
    """The tenant as it stands in keys: percent-encoded, so without ``:``."""
    return quote(tenant, safe="")


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys below one prefix."""

    prefix: str = PREFIX

    def _key(self, name: str, *parts: str) -> str:
        return self.prefix + PATTERNS[name].format(*parts)

    def job(self, job_id: str) -> str:
        """Hash: the record."""
        return self._key("job", job_id)

    def events(self, job_id: str) -> str:
        """Stream: the job's history."""
        return self._key("events", job_id)

    def attempts(self, job_id: str) -> str:
        """Hash: the job's attempts that have ended."""
        return self._key("attempts", job_id)

    def aliases(self, job_id: str) -> str:
        """Hash: other names of the job with their canvas."""
        return self._key("aliases", job_id)

    def delivered(self, job_id: str) -> str:
        """Set: parts of the delivery that are done."""
        return self._key("delivered", job_id)

    def alias(self, name: str) -> str:
        """String: the job that this name means."""
        return self._key("alias", name)

    def idem(self, tenant: str, key: str) -> str:
        """Hash: the job behind an idempotency key."""
        return self._key("idem", tag(tenant), key)

    def backlog(self, queue: str) -> str:
        """Sorted set: PENDING jobs."""
        return self._key("backlog", queue)

    def published(self, queue: str) -> str:
        """Sorted set: QUEUED jobs."""
        return self._key("published", queue)

    def held(self) -> str:
        """Sorted set: HELD jobs."""
        return self._key("held")

    def deadlines(self) -> str:
        """Sorted set: jobs that must start in time and have not."""
        return self._key("deadlines")

    def running(self) -> str:
        """Sorted set: RUNNING jobs."""
        return self._key("running")

    def undelivered(self) -> str:
        """Set: ended jobs whose outcome waits."""
        return self._key("undelivered")

    def jobs_all(self) -> str:
        """Sorted set: index of all jobs."""
        return self._key("jobs_all")

    def jobs_state(self, state: State) -> str:
        """Sorted set: index of one state."""
        return self._key("jobs_state", state.value)

    def jobs_tenant(self, tenant: str) -> str:
        """Sorted set: index of one tenant."""
        return self._key("jobs_tenant", tag(tenant))

    def ended(self) -> str:
        """Sorted set: what leaves the indexes, and when."""
        return self._key("ended")

    def quotas(self) -> str:
        """Hash: tickets that may be out per queue."""
        return self._key("quotas")

    def routes(self) -> str:
        """Hash: the queues that tickets of a backlog go to."""
        return self._key("routes")

    def offered(self) -> str:
        """Hash: work ever submitted to each backlog."""
        return self._key("offered")

    def works(self) -> str:
        """Hash: work in each backlog."""
        return self._key("works")

    def leads(self) -> str:
        """Hash: how far the virtual time of each tier is ahead of the clock."""
        return self._key("leads")

    def tenant(self, tier: str, tenant: str) -> str:
        """String: virtual time of a tenant's next turn."""
        return self._key("tenant", tier, tag(tenant))

    def desired(self) -> str:
        """Hash: what every worker is to serve."""
        return self._key("desired")

    def memory(self, name: str) -> str:
        """String: what a controller remembers."""
        return self._key("memory", name)

    def plans(self) -> str:
        """List: what the last ticks decided."""
        return self._key("plans")

    def queues(self) -> str:
        """Set: known queue names."""
        return self._key("queues")

    def gpu(self, name: str) -> str:
        """Hash: one GPU."""
        return self._key("gpu", name)

    def gpu_order(self, name: str) -> str:
        """Hash: an operator's word about one GPU."""
        return self._key("gpu_order", name)

    def gpu_orders(self) -> str:
        """Set: names of GPUs with such a word."""
        return self._key("gpu_orders")

    def urgent(self) -> str:
        """String: the controllers shall look at once."""
        return self._key("urgent")

    def witness(self) -> str:
        """String: store time when the store last answered a verb of workers or controllers."""
        return self._key("witness")

    def away(self) -> str:
        """Hash: how long a silence is an absence of the store, and when the last one ended."""
        return self._key("away")

    def losses(self) -> str:
        """Hash: crashes and GPU-seconds seen."""
        return self._key("losses")

    def erasing(self) -> str:
        """Sorted set: jobs whose objects are to be erased."""
        return self._key("erasing")

    def gpus(self) -> str:
        """Set: names of GPUs."""
        return self._key("gpus")

    def tick(self, controller: str) -> str:
        """Hash: the controller's newest tick."""
        return self._key("tick", controller)

    def report(self, controller: str) -> str:
        """String: report of the controller's last tick."""
        return self._key("report", controller)

    def op(self, token: str) -> str:
        """String: first answer under an op."""
        return self._key("op", token)
