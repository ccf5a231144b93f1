"""The operators' verbs through ``Client``: what record, result backend and broker hold then."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from celery.exceptions import TimeoutError as CeleryTimeout

from callsheet import wiring
from callsheet.app import app
from callsheet.client import Client
from callsheet.errors import JobCancelled, JobFailed, JobNotFound, Refused, StorageError
from callsheet.records.states import State
from callsheet.settings import load
from callsheet.tasks import operators
from callsheet.tasks.deliver import deliver
from tests.support.by_hand import Hand
from tests.support.live import until
from tests.support.valkey import Valkey

WHO = "ann@desk"


@pytest.fixture
def hand(tmp_path: Path, valkey_url: str) -> Hand:
    """The workers, played by the test, of a deployment without any."""
    env = {"CALLSHEET_BROKER_URL": valkey_url, "CALLSHEET_DATA_DIR": str(tmp_path / "data")}
    settings = load(env=env)
    app.use(settings)
    return Hand(settings)


@pytest.fixture
def client(hand: Hand) -> Client:
    """This process as its client."""
    return Client()


@pytest.fixture
def broadcasts(valkey: Valkey) -> Iterator[Any]:
    """What is told to workers by Celery's remote control."""
    with valkey.client() as redis, redis.pubsub() as heard:
        heard.psubscribe("*pidbox*")
        heard.get_message(timeout=5)  # the subscription itself
        yield heard


def failed(hand: Hand) -> tuple[str, str]:
    """A job that failed and was delivered, and another name of it."""
    job_id = hand.submit(idempotency_key="k")
    assert hand.submit("other-name", idempotency_key="k") == job_id
    hand.fail(job_id, "it broke")
    assert deliver(hand.store, job_id)
    return job_id, "other-name"


def test_get_waits_anew_under_every_name_after_a_requeue(client: Client, hand: Hand) -> None:
    names = failed(hand)
    for name in names:
        with pytest.raises(JobFailed, match="it broke"):
            client.job(name).get(timeout=10)
    assert client.requeue(names[1], reason="fixed", who=WHO) is State.QUEUED
    for name in names:
        with pytest.raises(CeleryTimeout):
            client.job(name).get(timeout=0.2)
        assert client.job(name).state == "PENDING"
    lease = hand.claim_ticket(names[0])
    hand.finish_well(lease, b"film")
    assert deliver(hand.store, names[0])
    for name in names:
        assert client.job(name).get(timeout=10)["attempts"] == 2


def stored_end(valkey: Valkey, job_id: str) -> tuple[str, bytes]:
    """The channel on which a result is told, and what was told there of the job's end."""
    key = f"celery-task-meta-{job_id}"
    with valkey.client() as redis:
        raw = redis.get(key)
    assert raw
    return key, raw if isinstance(raw, bytes) else raw.encode()


def test_the_message_of_an_end_that_came_before_the_requeue_is_not_believed(
    client: Client, hand: Hand, valkey: Valkey
) -> None:
    job_id, _ = failed(hand)
    _, told = stored_end(valkey, job_id)
    client.requeue(job_id, reason="fixed", who=WHO)
    handle = client.job(job_id)
    handle.backend.result_consumer.on_state_change(handle.backend.decode_result(told), None)
    with pytest.raises(CeleryTimeout):
        handle.get(timeout=0.2)  # it came while nobody waited, so Celery has kept it


def test_the_message_of_an_end_that_comes_after_the_requeue_is_not_believed(
    client: Client, hand: Hand, valkey: Valkey
) -> None:
    job_id, _ = failed(hand)
    channel, told = stored_end(valkey, job_id)
    client.requeue(job_id, reason="fixed", who=WHO)
    with ThreadPoolExecutor(1) as pool, valkey.client() as redis:
        waiting = pool.submit(client.job(job_id).get, timeout=20)
        until(lambda: redis.publish(channel, told), within_s=10, what="a handle that listens")
        lease = hand.claim_ticket(job_id)
        hand.finish_well(lease, b"film")
        assert deliver(hand.store, job_id)
        assert waiting.result(timeout=20)["attempts"] == 2


def test_a_cancelled_job_is_requeued_before_its_end_was_delivered(client: Client, hand: Hand) -> None:
    job_id = hand.submit()
    client.cancel(job_id, reason="oops", who=WHO)
    client.requeue(job_id)
    assert not deliver(hand.store, job_id)
    with pytest.raises(CeleryTimeout):
        client.job(job_id).get(timeout=0.2)
    client.cancel(job_id, reason="oops", who=WHO)
    assert deliver(hand.store, job_id)
    with pytest.raises(JobCancelled, match="oops, by ann@desk"):
        client.job(job_id).get(timeout=10)


def test_a_requeue_waits_for_a_delivery_that_is_under_way(client: Client, hand: Hand) -> None:
    job_id = hand.submit()
    client.cancel(job_id)
    assert hand.store.lock_delivery(job_id, token="a controller", busy_s=1.0)
    began = hand.store.now()
    with pytest.raises(Refused, match="being delivered just now"):
        operators.requeue(hand.store, job_id, from_checkpoint=None, reason="", patience_s=0.0)
    assert client.requeue(job_id) is State.PENDING
    assert hand.store.now() - began >= 0.99
    client.cancel(job_id)
    assert deliver(hand.store, job_id)  # the requeue kept no lock


def test_a_requeued_job_has_its_ticket_in_the_queue_at_once(
    client: Client, hand: Hand, valkey: Valkey
) -> None:
    job_id, _ = failed(hand)
    client.requeue(job_id)
    queue = client.get(job_id).queue
    with valkey.client() as redis:
        waiting = [json.loads(message) for message in redis.lrange(queue, 0, -1)]
    assert [message["headers"]["id"] for message in waiting] == [client.get(job_id).ticket_id]


def test_a_preempted_attempt_is_told_by_signal_and_by_its_record(
    client: Client, hand: Hand, broadcasts: Any
) -> None:
    job_id = hand.submit(tier="pro")
    hand.claim(job_id, worker="t4-3@there")
    told = client.preempt(job_id, reason="a demo", who=WHO)
    assert client.get(job_id).order == "yield"
    command = json.loads(base64.b64decode(json.loads(broadcasts.get_message(timeout=10)["data"])["body"]))
    assert (command["method"], command["destination"]) == ("revoke", ["t4-3@there"])
    arguments = command["arguments"]
    assert (arguments["terminate"], arguments["signal"]) == (True, "SIGUSR1")
    assert told.ticket_id in arguments["task_id"]


def test_without_a_broker_the_record_carries_the_order(tmp_path: Path, valkey_url: str) -> None:
    env = {
        "CALLSHEET_BROKER_URL": "redis://127.0.0.1:1/0",
        "CALLSHEET_STORE_URL": valkey_url,
        "CALLSHEET_DATA_DIR": str(tmp_path),
    }
    settings = load(env=env)
    app.use(settings)
    hand = Hand(settings)
    job_id = hand.submit()
    hand.claim(job_id)
    Client().preempt(job_id)
    assert hand.store.get(job_id).order == "yield"


def test_what_does_not_run_is_not_preempted(client: Client, hand: Hand) -> None:
    with pytest.raises(Refused, match="is pending"):
        client.preempt(hand.submit())
    with pytest.raises(JobNotFound):
        client.preempt("nope")
    with pytest.raises(JobNotFound):
        client.requeue("nope")


def test_a_job_s_owner_erases_it_by_its_handle(client: Client, hand: Hand) -> None:
    job_id = hand.submit(prompt="a secret")
    hand.succeed(job_id, b"film")
    hand.objects.put(f"checkpoints/{job_id}/1-a/00001.safetensors", b"late")
    assert client.job(job_id).cancel(erase=True) is State.SUCCEEDED
    record = hand.store.get(job_id)
    assert (record.erased, record.request.prompt, record.film) == (True, "", "")
    assert hand.objects.list() == []


def test_storage_that_is_away_is_told_after_the_record_was_erased(client: Client, hand: Hand) -> None:
    job_id = hand.submit(prompt="a secret")
    hand.succeed(job_id, b"film")
    away = {"storage_url": "s3://films", "s3_endpoint": "http://127.0.0.1:1", "s3_allow_http": True}
    keys = {"s3_access_key_id": "a", "s3_secret_access_key": "b"}
    wiring.configure(hand.settings.replace(**away, **keys), store=hand.store)
    with pytest.raises(StorageError, match="is erased; the janitor"):
        client.job(job_id).cancel(erase=True)
    assert hand.store.get(job_id).request.prompt == ""
    assert list(hand.store.erasing()) == [job_id]
