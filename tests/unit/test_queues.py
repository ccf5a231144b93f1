"""The one rule for queue names."""

from __future__ import annotations

import pytest

from callsheet.errors import BadQueueName
from callsheet.routing.queues import QueueName, parse_queue, queue_name


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("pro.h100", ("pro", "h100", "")),
        ("free.a100-40g", ("free", "a100-40g", "")),
        ("pro.h100.wan2.2-t2v-a14b", ("pro", "h100", "wan2.2-t2v-a14b")),
        ("free.a100-40g.hunyuanvideo", ("free", "a100-40g", "hunyuanvideo")),
    ],
)
def test_names_and_parts(name: str, parts: tuple[str, str, str]) -> None:
    assert queue_name(*parts) == name
    assert parse_queue(name) == QueueName(*parts)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "pro",
        "pro.",
        ".h100",
        "pro..lane",
        "pro.h100.",
        "pro.h100.a..b",
        "Pro.h100",
        "pro.h_100",
        "pro.h100 ",
        "pro.h100\n",
        "pro.-h100",
        "pro.h100-",
        "celery",
        "callsheet control",
        "pro.h100.lane.",
        "pro.h１00",
    ],
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(BadQueueName, match="not a queue of callsheet"):
        parse_queue(name)


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        (("", "h100", ""), "tier ''"),
        (("p.ro", "h100", ""), "tier 'p.ro'"),
        (("pro", "h100.x", ""), "GPU class 'h100.x'"),
        (("pro", "H100", ""), "GPU class 'H100'"),
        (("pro", "h100", "a/b"), "lane 'a/b'"),
        (("pro", "h100", ".a"), "lane '.a'"),
    ],
)
def test_bad_parts_are_refused(parts: tuple[str, str, str], says: str) -> None:
    with pytest.raises(BadQueueName) as caught:
        QueueName(*parts)
    assert str(caught.value).startswith(f"{says} cannot stand in a queue name; allowed: lower-case")
