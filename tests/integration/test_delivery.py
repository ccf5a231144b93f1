"""Delivery that is cut off anywhere, or finds the host away, is finished by the next one."""

from __future__ import annotations

import time
import uuid
from typing import Any, cast

import pytest
from celery import Celery

from callsheet.app import app
from callsheet.mixed import MARK, OURS
from callsheet.records.jobs import Ticket
from callsheet.records.states import State
from callsheet.store.memory import MemoryStore
from callsheet.store.protocol import Lease, Store
from callsheet.tasks.canvas import freeze_canvas
from callsheet.tasks.deliver import AGAIN_S, BUSY_S, deliver
from tests.support.host_app import make_host, notes
from tests.support.jobs import new_job, op
from tests.support.live import until
from tests.support.valkey import Valkey

WAIT_S = 30.0


class Cut(Exception):
    """The deliverer dies."""


class CutOff:
    """A store whose n-th ``mark_part`` is the deliverer's last act: it takes effect, or just not."""

    def __init__(self, store: Store, *, at: int, when: str) -> None:
        self._store, self._left, self._when = store, at, when

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def mark_part(self, job_id: str, part: str) -> None:
        self._left -= 1
        if self._left == 0 and self._when == "before":
            raise Cut
        self._store.mark_part(job_id, part)
        if self._left == 0:
            raise Cut


class Clock:
    """The store's clock, set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def ended(store: MemoryStore, canvas: dict[str, Any], state: State = State.SUCCEEDED) -> str:
    """A job that has just ended, with its links and chord."""
    job = new_job(str(uuid.uuid4()), canvas=canvas)
    store.submit(job, op=op())
    if state is State.CANCELLED:
        store.cancel(job.id, reason="in a test", op=op())
        return job.id
    store.set_quotas({job.queue: 1}, op=op())
    store.release(job.queue, op=op())
    lease = store.claim(Ticket(job.id, 1, job.queue), worker="w", token=op(), lease_s=60)
    assert isinstance(lease, Lease)
    store.finish(job.id, 1, lease.token, _outcome(), op=op())
    return job.id


def _outcome() -> Any:
    from callsheet.records.jobs import Outcome

    return Outcome(State.SUCCEEDED, film="file:///film.mp4", step=8)


def settled(host: Celery) -> None:
    """The host's one worker has done all that was published before."""
    host.tasks["host.number"].delay(1).get(timeout=WAIT_S)


def with_chord(host: Celery, about: str) -> dict[str, Any]:
    """The canvas of the only member of a chord, with a link."""
    group_id = str(uuid.uuid4())
    body = host.tasks["host.note"].s(about=f"body {about}")
    body.freeze()
    body[MARK] = OURS
    app.backend.set_chord_size(group_id, 1)
    link = host.tasks["host.note"].s(about=f"link {about}")
    return freeze_canvas({"link": link, "chord": body, "group_id": group_id, "group_index": 0})


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_delivery_that_is_cut_off_is_finished_once(host: Celery, at: int, when: str) -> None:
    about, clock = f"{at} {when} {uuid.uuid4()}", Clock()
    store = MemoryStore(clock)
    canvas = with_chord(host, about)
    job_id = ended(store, canvas)
    with pytest.raises(Cut):
        deliver(cast(Store, CutOff(store, at=at, when=when)), job_id)
    assert not deliver(store, job_id)  # the dead one's lock
    clock.now += BUSY_S + 1
    assert deliver(store, job_id)
    assert not deliver(store, job_id)  # nothing is left to do
    settled(host)
    calls = notes(host, f"link {about}")
    assert {task_id for task_id, _ in calls} == {canvas["link"][0]["options"]["task_id"]}
    assert len(calls) == (2 if (at, when) == (1, "before") else 1)  # one id, whose result is stored once
    assert len(notes(host, f"body {about}")) == 1
    assert app.backend.get_task_meta(job_id)["status"] == "SUCCESS"


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_error_link_has_the_same_id_both_times(host: Celery, when: str) -> None:
    about, clock = f"error {when} {uuid.uuid4()}", Clock()
    store = MemoryStore(clock)
    job_id = ended(
        store, freeze_canvas({"link_error": host.tasks["host.note"].s(about=about)}), State.CANCELLED
    )
    with pytest.raises(Cut):
        deliver(cast(Store, CutOff(store, at=1, when=when)), job_id)
    clock.now += BUSY_S + 1
    assert deliver(store, job_id)
    settled(host)
    calls = notes(host, about)
    assert len({task_id for task_id, _ in calls}) == 1
    assert {said for _, said in calls} == {job_id}
    assert app.backend.get_task_meta(job_id)["status"] == "REVOKED"


@pytest.mark.parametrize("noticed", ["before the count", "while the body is published"])
def test_a_chord_whose_host_is_away_fires_once_it_is_back(
    plain_host: Celery, noticed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if noticed != "before the count":
        monkeypatch.setattr("callsheet.tasks.deliver.check_reachable", lambda _app: None)
    clock, group_id = Clock(), str(uuid.uuid4())
    store = MemoryStore(clock)
    with Valkey(aof=True) as valkey:
        other = make_host(valkey.url, name="other", queue="other-work", tasks=False)
        try:
            other.set_current()
            body = other.signature("other.echo")
            body.freeze()
            body[MARK] = OURS
            app.backend.set_chord_size(group_id, 2)
            jobs = [
                ended(store, freeze_canvas({"chord": body, "group_id": group_id, "group_index": index}))
                for index in range(2)
            ]
            assert deliver(store, jobs[0])
            valkey.stop()
            assert not deliver(store, jobs[1])
            assert store.undelivered() == [jobs[1]]
            valkey.start()
            claim = app.backend.get_key_for_group(group_id, ".c")
            until(lambda: not app.backend.client.exists(claim), what="nobody holds the right to fire")
            clock.now += AGAIN_S + 1
            assert deliver(store, jobs[1])
            assert valkey.client().llen("other-work") == 1
            assert app.backend.get_task_meta(body.id)["status"] == "PENDING"  # no end but its own
        finally:
            other.close()


def test_a_host_that_is_away_holds_up_its_own_links_only(plain_host: Celery) -> None:
    clock = Clock()
    store = MemoryStore(clock)
    with Valkey(aof=True) as valkey:
        other = make_host(valkey.url, name="other", queue="other-work", tasks=False)
        try:
            other.set_current()
            job_id = ended(store, freeze_canvas({"link": other.signature("other.echo")}))
            valkey.stop()
            began = time.monotonic()
            assert not deliver(store, job_id)
            assert time.monotonic() - began < 5
            assert app.backend.get_task_meta(job_id)["status"] == "SUCCESS"  # our waiter has it
            assert store.undelivered() == [job_id]
            valkey.start()
            clock.now += AGAIN_S + 1
            assert deliver(store, job_id)
            assert valkey.client().llen("other-work") == 1
        finally:
            other.close()
