"""Replies to remote control that nobody will read: kombu leaves them on the broker's Redis for ever.

Who asks the workers (``inspect``, Flower) declares the queue ``<oid>.reply.celery.pidbox``: a list, and a
member of the set ``_kombu.binding.reply.celery.pidbox``. When the asker dies, the member stays, and every
answer that comes late makes a list without a time to live (kombu issue 294, celery issue 6089).

Swept is Celery's default control exchange, without ``global_keyprefix``: callsheet sets neither. The clock is
the broker's own.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, cast

import redis

from callsheet.beat.janitor import Tools

log = logging.getLogger(__name__)

ORPHAN_S = 3600  # without any use
LOOKED_AT = 5000  # keys of the broker in one run: with many keys a round takes several runs
AWAY_S = 600  # when the janitor was away for so long, it begins to count anew
EXCHANGE = "reply.celery.pidbox"
BINDINGS = f"_kombu.binding.{EXCHANGE}"
PERMANENT = f"_kombu.binding_permanent.{EXCHANGE}"
SEPARATOR = "\x06\x16"  # of routing key, pattern and queue in a member
#: Hash on the broker: when a member was first seen without a list. Lives for AWAY_S after the last run.
SEEN = "callsheet:pidbox:seen"
#: String on the broker: how far the last run looked through the keys. Lives as long.
CURSOR = "callsheet:pidbox:cursor"


def sweep_pidbox(tools: Tools) -> int:
    """Remove reply queues unused for an hour. Answers how many; raises redis.RedisError."""
    client = tools.broker()
    if client is None:
        return 0
    members = {_queue(member): member for member in _members(client)}
    removed = sum(_drop_idle(client, queue, members.get(queue, "")) for queue in _lists(client))
    removed += _drop_listless(client, members)
    if removed:
        log.info("removed %d orphan reply queues of remote control", removed)
    return removed


def _drop_idle(client: redis.Redis, queue: str, member: str) -> bool:
    """Remove a list that was not used for an hour, unless it is used at this moment."""
    with client.pipeline() as pipe:
        try:
            cast(Any, pipe).watch(queue)  # annotated in some versions of redis-py only
            idle = cast(int | None, pipe.object("IDLETIME", queue))
            if idle is None or idle < ORPHAN_S:
                return False
            pipe.multi()
            pipe.delete(queue)
            _unbind(pipe, member or SEPARATOR.join((queue.removesuffix(f".{EXCHANGE}"), "", queue)))
            pipe.execute()
        except redis.WatchError:  # an answer came: somebody lives
            return False
    return True


def _drop_listless(client: redis.Redis, members: Mapping[str, str]) -> int:
    """Remove members that were without a list each time we looked, for an hour."""
    now = client.time()[0]
    before = {_text(name): int(at) for name, at in cast(dict[Any, Any], client.hgetall(SEEN)).items()}
    listless = [queue for queue in members if not client.exists(queue)]
    first = {queue: before.get(queue, now) for queue in listless}
    old = {queue for queue, at in first.items() if now - at >= ORPHAN_S}
    with client.pipeline() as pipe:
        for queue in old:
            _unbind(pipe, members[queue])
        pipe.delete(SEEN)
        if young := {queue: str(at) for queue, at in first.items() if queue not in old}:
            pipe.hset(SEEN, mapping=cast(dict[Any, Any], young))
            pipe.expire(SEEN, AWAY_S)
        pipe.execute()
    return len(old)


def _unbind(pipe: redis.client.Pipeline, member: str) -> None:
    pipe.srem(BINDINGS, member)
    pipe.srem(PERMANENT, member)


def _lists(client: redis.Redis) -> set[str]:
    """Reply lists among the next keys."""
    cursor, looked, found = int(cast(Any, client.get(CURSOR)) or 0), 0, set()
    while looked < LOOKED_AT:
        cursor, keys = cast(
            tuple[int, list[Any]], client.scan(cursor, match=f"*.{EXCHANGE}", count=1000, _type="list")
        )
        found |= {_text(key) for key in keys}
        looked += 1000
        if not cursor:
            break
    client.set(CURSOR, cursor, ex=AWAY_S)
    return found


def _members(client: redis.Redis) -> set[str]:
    return {_text(member) for member in cast(set[Any], client.smembers(BINDINGS))}


def _queue(member: str) -> str:
    return member.split(SEPARATOR)[-1]


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
