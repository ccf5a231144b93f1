"""``make demo``: a whole deployment on this machine, eight films, one picture; nothing is left running.

It does what an operator and an application do: ``callsheet models build-tiny``, ``callsheet up``, and then
``generate_video.delay(...)`` from this process. The GPUs are declared, so the tiny models run on the CPU, by
the same code that runs Wan or LTX on an H100. Everything it writes lies in ``./demo-data``.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from callsheet.errors import CallsheetError
from examples.demo_parts import stack, view
from examples.demo_parts.stack import DATA, OUT, DemoFailed
from examples.demo_parts.view import Shot, say, shown

if TYPE_CHECKING:
    from callsheet.records.jobs import Job

SHOTS = (
    Shot("free", "tiny-wan", "waves at the shore, evening"),
    Shot("free", "tiny-ltx", "a red kite over green hills"),
    Shot("free", "tiny-wan", "rain on a window, city lights"),
    Shot("free", "tiny-ltx", "autumn leaves in the wind"),
    Shot("pro", "tiny-wan", "a cat that walks over the grass"),
    Shot("pro", "tiny-ltx", "snow falls on a pine forest"),
    Shot("pro", "tiny-wan", "a lighthouse in a storm"),
    Shot("pro", "tiny-ltx", "clouds over a mountain lake"),
)
SHAPE = {"width": 96, "height": 64, "frames": 25, "fps": 12, "steps": 24}  # about a second on one CPU core
JOBS_S = 300.0  # longest time for all films
POLL_S = 0.1


def main() -> int:
    """Run it; 0 when every film was made and nothing is left running."""
    for stop_signal in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(stop_signal, _interrupt)
    try:
        with stack.empty_folder() as lock:
            run(lock)
    except (DemoFailed, CallsheetError) as failure:
        print("\n".join([f"demo failed: {failure}", *getattr(failure, "__notes__", [])]), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def run(lock: int) -> None:
    """Everything between an empty folder and the picture. ``lock`` is the folder's lock."""
    settle()
    stack.build_models()
    with stack.running(lock) as check_alive:
        ids = submit()
        records = follow(ids, check_alive)
        check_made(records)
        films = download(ids)
        say("stopping the stack ...")
    view.console.print(view.table(records, [shown(film) for film in films]))
    say(f"frames of every film: {shown(picture(films))}")


def settle() -> None:
    """Let this process and its children see the demo's settings only, and no settings file."""
    for name in [name for name in os.environ if name.startswith("CALLSHEET_")]:
        del os.environ[name]
    os.environ |= {
        "CALLSHEET_DATA_DIR": str(DATA),
        "CALLSHEET_GPUS": "h100,a100",
        "CALLSHEET_FLOWER_PORT": str(stack.free_port()),  # another Flower may run on the usual one
        "CALLSHEET_TORCH_THREADS": "1",  # two workers on few cores would only wait for each other
        stack.RUN_VARIABLE: secrets.token_hex(8),
    }


def submit() -> list[str]:
    """Submit every shot as an application does; the jobs' ids."""
    from callsheet import generate_video

    ids = []
    for number, shot in enumerate(SHOTS, 1):
        job = generate_video.delay(prompt=shot.prompt, model=shot.model, tier=shot.tier, seed=number, **SHAPE)
        ids.append(job.id)
    say(f"submitted {len(ids)} jobs: first the free ones, then the pro ones")
    return ids


def follow(ids: Sequence[str], check_alive: Callable[[], None]) -> list[Job]:
    """Show the jobs until all have ended; their records. Raises DemoFailed."""
    from callsheet import Client

    client = Client()
    ends = time.monotonic() + JOBS_S
    with view.progress(SHOTS, SHAPE["steps"]) as show:
        while True:
            records = [client.get(job_id) for job_id in ids]
            for number, record in enumerate(records):
                show(number, record)
            if all(record.ended for record in records):
                return records
            check_alive()
            if time.monotonic() > ends:
                raise DemoFailed(f"the films were not done within {JOBS_S:.0f} s")
            time.sleep(POLL_S)


def check_made(records: Sequence[Job]) -> None:
    """Raise DemoFailed that names every job without a film."""
    faults = [f"  {record.id} {record.state}: {record.error}" for record in records if not record.film]
    if faults:
        raise DemoFailed("\n".join([f"{len(faults)} of {len(records)} jobs made no film:", *faults]))


def download(ids: Sequence[str]) -> list[Path]:
    """Fetch every film out of object storage."""
    from callsheet import Client

    client = Client()
    return [
        client.download(job_id, OUT / f"{number}-{shot.tier}-{shot.model}.mp4")
        for number, (job_id, shot) in enumerate(zip(ids, SHOTS, strict=True), 1)
    ]


def picture(films: Sequence[Path]) -> Path:
    """One PNG with frames of every film."""
    from callsheet.workers.contact_sheet import contact_sheet

    path = OUT / "films.png"
    labels = [f"{number}  {shot.tier} {shot.model}: {shot.prompt}" for number, shot in enumerate(SHOTS, 1)]
    path.write_bytes(contact_sheet(films, labels, per_film=6))
    return path


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
