"""``callsheet job`` against a real Valkey. No workers: what one would do is done by hand."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from callsheet.records.states import State
from callsheet.settings import load
from tests.support.by_hand import Hand
from tests.support.cli import Cli

NAMES = ("--model", "tiny-wan")


@pytest.fixture
def hand(cli: Cli) -> Hand:
    """A worker that the test plays."""
    return Hand(load(env=cli.env))


def submit(cli: Cli, *args: str, prompt: str = "a cat") -> str:
    said = cli("job", "submit", prompt, *NAMES, *args)
    assert said.code == 0, said.err
    return said.out.strip()


def test_submit_prints_the_id_and_nothing_else(cli: Cli) -> None:
    said = cli("job", "submit", "a cat", *NAMES)
    assert said.code == 0
    assert said.out == f"{uuid.UUID(said.out.strip())}\n"
    assert said.err == ""


def test_a_submitted_job_waits_and_says_for_what(cli: Cli) -> None:
    job_id = submit(cli, "--tier", "pro", "--tenant", "acme", "--seed", "7", "--size", "32x32")
    shown = cli("job", "show", job_id, "-o", "json").json
    job = shown["job"]
    assert (job["id"], job["state"], job["tier"], job["tenant"]) == (job_id, "pending", "pro", "acme")
    assert (job["request"]["seed"], job["request"]["width_px"]) == (7, 32)
    assert job["wait_s"] is None
    assert job["film_url"] is None
    assert "none is alive" in shown["waits_for"]
    assert [event["kind"] for event in shown["events"]] == ["submitted"]


def test_a_prompt_comes_from_stdin_byte_for_byte(cli: Cli) -> None:
    prompt = "eine Katze 🐈\nim Gras\tمرحبا"
    said = cli("job", "submit", "-", *NAMES, "-o", "json", stdin=f"{prompt}\n")
    assert said.code == 0, said.err
    assert said.json["job"]["request"]["prompt"] == prompt


def test_a_bad_request_names_every_fault_and_stores_nothing(cli: Cli) -> None:
    said = cli(
        "job", "submit", *NAMES, "--guidance", "nan", "--frames", "-3", "--size", "1x1", "--tier", "gold"
    )
    assert said.code == 2
    assert said.out == ""
    for name in ("prompt", "guidance", "frames", "size", "tier"):
        assert f"- {name}" in said.err
    assert cli("job", "list", "-o", "json").json == {"jobs": [], "cursor": None}


def test_an_unknown_model_in_json_mode(cli: Cli) -> None:
    said = cli("job", "submit", "a cat", "--model", "tiny-wam", "-o", "json")
    assert (said.code, said.out) == (2, "")
    assert said.error["type"] == "RequestError"
    assert "tiny-wan" in said.error["message"]
    assert said.error["exit_code"] == 2


def test_no_gpu_class_fits_is_refused(cli: Cli) -> None:
    said = cli("job", "submit", "a", "--model", "hunyuanvideo", env={"CALLSHEET_GPU_CLASSES": "t4"})
    assert said.code == 6
    assert "would fit" in said.err


def test_the_same_key_is_the_same_job_and_another_body_is_refused(cli: Cli) -> None:
    first = submit(cli, "--idempotency-key", "k1")
    assert submit(cli, "--idempotency-key", "k1") == first
    said = cli("job", "submit", "a dog", *NAMES, "--idempotency-key", "k1")
    assert said.code == 6
    assert said.out == ""


def test_a_deadline_is_a_span_or_a_time(cli: Cli) -> None:
    said = cli("job", "submit", "a", *NAMES, "--deadline", "10m", "-o", "json")
    job = said.json["job"]
    assert job["request"]["deadline_at"] == pytest.approx(job["created_at"] + 600, abs=60)
    bad = cli("job", "submit", "a", *NAMES, "--deadline", "soon")
    assert bad.code == 2
    assert "2h" in bad.err


def test_list_filters_and_pages(cli: Cli, hand: Hand) -> None:
    ids = [hand.submit(tier=tier) for tier in ("free", "pro", "free")]
    newest = ids[::-1]
    first = cli("job", "list", "--limit", "2", "-o", "json").json
    assert [job["id"] for job in first["jobs"]] == newest[:2]
    rest = cli("job", "list", "--cursor", first["cursor"], "-o", "json").json
    assert [job["id"] for job in rest["jobs"]] == newest[2:]
    assert rest["cursor"] is None
    pro = cli("job", "list", "--tier", "pro").out.splitlines()
    assert [line.split()[0] for line in pro] == ["job", ids[1]]
    one_free = cli("job", "list", "--tier", "free", "--limit", "1", "-o", "json").json
    assert [job["id"] for job in one_free["jobs"]] == [ids[2]]
    assert one_free["cursor"]


def test_an_empty_list_says_so_beside_the_data(cli: Cli) -> None:
    said = cli("job", "list", "--state", "running")
    assert (said.code, said.out, said.err) == (0, "", "no jobs\n")


def test_cancel_then_watch(cli: Cli, hand: Hand) -> None:
    job_id = hand.submit()
    said = cli("job", "cancel", job_id, "--reason", "changed my mind", "-o", "json")
    assert said.code == 0
    assert [job["state"] for job in said.json["jobs"]] == ["cancelled"]
    watched = cli("job", "watch", job_id)
    assert watched.code == 1
    assert "cancelled" in watched.err
    assert "changed my mind" in cli("job", "show", job_id).out


def test_a_job_that_has_ended_cannot_be_cancelled(cli: Cli, hand: Hand) -> None:
    job_id, other, third = hand.submit(), hand.submit(), hand.submit()
    hand.succeed(job_id, b"film")
    hand.store.cancel(third, reason="", op="o")  # to cancel it again is no fault
    said = cli("job", "cancel", job_id, other, third, "-o", "json")
    assert said.code == 6
    assert [job["state"] for job in said.json["jobs"]] == ["succeeded", "cancelled", "cancelled"]
    assert third not in said.err
    assert job_id in said.err


def test_watch_ends_at_its_timeout_with_the_states_so_far(cli: Cli, hand: Hand) -> None:
    done = hand.submit()
    hand.succeed(done, b"film")
    waiting = hand.submit()
    said = cli("job", "watch", done, waiting, done, "--timeout", "0.3s", "-o", "json")
    assert said.code == 4
    assert [job["state"] for job in said.json["jobs"]] == ["succeeded", "pending"]
    assert "1 job not ended" in said.err


def test_watch_of_films_that_are_there_ends_at_once(cli: Cli, hand: Hand) -> None:
    ids = [hand.submit(), hand.submit()]
    for job_id in ids:
        hand.succeed(job_id, b"film")
    said = cli("job", "watch", *ids)
    assert said.code == 0
    assert said.out.count("succeeded") == 2


def test_watch_tells_why_a_job_failed(cli: Cli, hand: Hand) -> None:
    job_id = hand.submit()
    hand.fail(job_id, "no folder /models/x: run callsheet models build-tiny")
    said = cli("job", "watch", job_id)
    assert said.code == 1
    assert "no folder /models/x" in said.err


def test_download_writes_the_film_and_never_overwrites_unasked(cli: Cli, hand: Hand, tmp_path: Path) -> None:
    job_id = hand.submit()
    hand.succeed(job_id, b"the film")
    said = cli("job", "download", job_id, "new/")
    assert (said.code, said.out) == (0, f"new/{job_id}.mp4\n")
    film = tmp_path / "new" / f"{job_id}.mp4"
    assert film.read_bytes() == b"the film"
    film.write_bytes(b"mine")
    refused = cli("job", "download", job_id, "new", "-o", "json")
    assert (refused.code, refused.out) == (6, "")
    assert refused.error["type"] == "Refused"
    assert film.read_bytes() == b"mine"
    forced = cli("job", "download", job_id, str(film), "--force", "-o", "json")
    assert forced.json == {"job_id": job_id, "path": str(film), "bytes": 8}
    assert film.read_bytes() == b"the film"


def test_there_is_no_film_before_the_end(cli: Cli, hand: Hand) -> None:
    said = cli("job", "download", hand.submit())
    assert (said.code, said.out) == (6, "")


def test_submit_with_download_waits_for_the_film(cli: Cli, hand: Hand, tmp_path: Path) -> None:
    call = cli.start("job", "submit", "a cat", *NAMES, "--download", "cat.mp4", "--timeout", "50s")
    assert call.stdout is not None
    job_id = call.stdout.readline().strip()  # told at once, not at the end
    hand.succeed(job_id, b"the film")
    _, err = call.communicate(timeout=50)
    assert call.returncode == 0, err
    assert "film: cat.mp4" in err
    assert (tmp_path / "cat.mp4").read_bytes() == b"the film"
    again = cli("job", "submit", "a cat", *NAMES, "--download", "cat.mp4")
    assert (again.code, again.out) == (6, "")
    assert sum(hand.store.counts().values()) == 1


def test_submit_that_waits_tells_the_failure(cli: Cli, hand: Hand) -> None:
    call = cli.start("job", "submit", "a cat", *NAMES, "--wait", "-o", "json", "--timeout", "50s")
    assert call.stderr is not None
    job_id = call.stderr.readline().split()[1]
    hand.fail(job_id, "it broke")
    out, _ = call.communicate(timeout=50)
    assert call.returncode == 1
    assert json.loads(out)["job"]["error"] == "it broke"


@pytest.mark.parametrize(
    "args",
    [("show", "nope"), ("watch", "nope"), ("download", "\x1b[31m*")],
    ids=lambda args: " ".join(map(ascii, args)),
)
def test_an_unknown_job_is_not_found(cli: Cli, args: tuple[str, ...]) -> None:
    said = cli("job", *args)
    assert (said.code, said.out) == (3, "")
    assert "\x1b" not in said.err


def test_nothing_is_cancelled_when_one_id_is_wrong(cli: Cli, hand: Hand) -> None:
    job_id = hand.submit()
    assert cli("job", "cancel", job_id, "nope").code == 3
    assert hand.store.get(job_id).state is State.PENDING


def test_an_alias_finds_its_job(cli: Cli, hand: Hand) -> None:
    first = hand.submit(idempotency_key="k")
    assert hand.submit("other-name", idempotency_key="k") == first
    for verb in ("show", "cancel", "watch"):
        document = cli("job", verb, "other-name", "-o", "json").json
        assert (document.get("job") or document["jobs"][0])["id"] == first
