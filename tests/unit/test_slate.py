"""The slate between a worker's parent and its child."""

from __future__ import annotations

import multiprocessing
import os
import threading

import pytest

from callsheet.workers.slate import HALF, Running, Slate


def running(step: int) -> Running:
    return Running(
        job_id="j" * 36,
        attempt=2,
        token=f"{step:032d}",
        queue="pro.h100",
        step=step,
        steps=50,
        phase="denoise",
        pid=os.getpid(),
        resident=("wan", "ltx"),
    )


def test_an_empty_slate_says_nothing() -> None:
    slate = Slate()
    assert slate.read_running() == Running()
    assert slate.read_order("any") == ""


def test_what_is_written_is_read() -> None:
    slate = Slate()
    slate.write_running(running(3))
    assert slate.read_running() == running(3)


def test_an_order_is_only_for_the_attempt_that_it_names() -> None:
    slate = Slate()
    slate.write_order("mine", "yield")
    assert slate.read_order("mine") == "yield"
    assert slate.read_order("later") == ""


def test_both_halves_are_apart() -> None:
    slate = Slate()
    slate.write_running(running(1))
    slate.write_order("t", "cancel")
    slate.write_running(running(2))
    assert slate.read_running().step == 2
    assert slate.read_order("t") == "cancel"


def test_a_forked_child_shares_it() -> None:
    slate = Slate()
    slate.write_order("t", "yield")
    child = multiprocessing.get_context("fork").Process(
        target=lambda: slate.write_running(Running(job_id=slate.read_order("t")))
    )
    child.start()
    child.join(10)
    assert slate.read_running().job_id == "yield"


def test_too_long_an_entry_is_refused_and_the_old_one_stays() -> None:
    slate = Slate()
    slate.write_running(running(1))
    with pytest.raises(ValueError, match="too long"):
        slate.write_running(Running(job_id="x" * HALF))
    assert slate.read_running() == running(1)


def test_a_writer_that_died_while_writing_is_overwritten() -> None:
    slate = Slate()
    slate._map[0:8] = (7).to_bytes(8, "little")  # odd: writing
    assert slate.read_running() == Running()
    slate.write_running(running(4))
    assert slate.read_running() == running(4)


def test_a_reader_never_sees_a_torn_entry() -> None:
    slate = Slate()
    over = threading.Event()

    def write() -> None:
        step = 0
        while not over.is_set():
            step = (step + 1) % 50
            slate.write_running(running(step))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3000):
            seen = slate.read_running()
            assert seen == Running() or seen == running(seen.step)
    finally:
        over.set()
        writer.join()
