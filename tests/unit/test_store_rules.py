"""Pure parts of the stores: codec, rules, sorted ids, opening by URL."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callsheet import errors
from callsheet.records.jobs import Job
from callsheet.records.states import State
from callsheet.store import codec, open_store, rules
from callsheet.store.fleet import Fleet
from callsheet.store.memory import MemoryStore
from callsheet.store.protocol import Store
from callsheet.store.redis_store import RedisStore
from callsheet.store.sorted_ids import SortedIds
from tests.support.jobs import GPU, new_job, request


@pytest.mark.parametrize("kind", [MemoryStore, RedisStore])
def test_each_store_has_every_verb(kind: type[Store]) -> None:
    verbs = {name for part in (Store, Fleet) for name in vars(part) if not name.startswith("_")}
    missing = {name for name in verbs if getattr(kind, name) in (getattr(Store, name), None)}
    assert missing == set()


def test_the_memory_store_loads_neither_celery_nor_redis() -> None:
    code = (
        "import callsheet.store.memory, sys; sys.exit(bool({'celery', 'redis', 'kombu'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_open_store_by_url() -> None:
    assert isinstance(open_store("memory://", retention_s=5), MemoryStore)
    assert isinstance(open_store("redis://localhost:1/0", retention_s=5), RedisStore)


@pytest.mark.parametrize("url", ["http://x", "redis//x", "redis://u:secret@h:port/0"])
def test_a_url_that_cannot_be_read_is_a_settings_error(url: str) -> None:
    with pytest.raises(errors.SettingsError, match="redis://localhost:6379/0") as caught:
        open_store(url, retention_s=5)
    assert "secret" not in str(caught.value)


def test_a_record_reads_back() -> None:
    new = replace(new_job("film", canvas={"a": [], "b": {}}), need_gib=0.1 + 0.2)
    fields = codec.new_job_fields(new) | {
        "state": "running",
        "delivered": "1",
        "created_at": "1.5",
        "novelty": "?",
    }
    assert codec.read_job("film", fields) == Job(
        id="film",
        state=State.RUNNING,
        request=new.request,
        need_gib=0.1 + 0.2,
        gpu_class="h100",
        queue="free.h100",
        steps=8,
        created_at=1.5,
        canvas={"a": [], "b": {}},
        delivered=True,
    )


def test_a_gpu_reads_back() -> None:
    assert codec.read_gpu(GPU.name, codec.gpu_fields(GPU)) == GPU
    idle = replace(GPU, queues=(), declared=False)
    assert codec.read_gpu(GPU.name, codec.gpu_fields(idle)) == idle


@given(st.text(), st.text(), st.dictionaries(st.text(), st.integers() | st.none()))
def test_any_text_survives_the_store(prompt: str, tenant: str, canvas: dict[str, object]) -> None:
    new = replace(new_job("film", canvas=canvas), request=request(prompt=prompt, tenant=tenant))
    job = codec.read_job("film", codec.new_job_fields(new) | {"state": "pending"})
    assert (job.request, job.canvas) == (new.request, canvas)


@given(st.integers(min_value=0, max_value=4_000_000_000_000_000))
def test_a_stamp_keeps_microseconds(micros: int) -> None:
    seconds = micros / 1e6
    assert float(codec.stamp(seconds)) == rules.micro(seconds)


def test_lost_text_names_the_unknown() -> None:
    job = Job("film", State.RUNNING, request(), 1.0, "h100", "free.h100", attempt=2, steps=8)
    assert "worker ? was lost in attempt 2 at step 0 of 8 (phase: ?)" in rules.lost_text(job, 3)


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(-3, 3), st.booleans())))
def test_sorted_ids_are_a_sorted_dict(steps: list[tuple[str, int, bool]]) -> None:
    ids, model = SortedIds(), dict[str, int]()
    for member, score, add in steps:
        if add:
            ids.add(member, score)
            model[member] = score
        else:
            ids.discard(member)
            model.pop(member, None)
        order = sorted(model, key=lambda name: (model[name], name))
        assert ids.first(99) == order
        assert ids.first(2) == order[:2]
        assert ids.up_to(0, 2) == [name for name in order if model[name] <= 0][:2]
        assert ids.below(1) == [name for name in reversed(order) if model[name] < 1]
        assert (len(ids), member in ids) == (len(model), member in model)
        assert ids.top == max(model.values(), default=0)
