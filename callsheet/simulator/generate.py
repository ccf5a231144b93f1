"""Makes traffic from a seed: bursty arrivals, few tenants and models that have most of the jobs.

The defaults resemble an hour of public inference traffic with the popularity of a public diffusion service.
No row of either is in here.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import random
from bisect import bisect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from callsheet.errors import SettingsError
from callsheet.simulator.scenario import Arrival
from callsheet.simulator.trace import COLUMNS


@dataclass(frozen=True, slots=True)
class Stream:
    """The arrivals of one tier."""

    tier: str
    jobs: int  # in ``Traffic.span_s``
    cv: float  # standard deviation of the times between arrivals over their mean
    peak: float = 0.0  # rate inside bursts over the mean rate; 0 = no bursts, gamma-distributed gaps


@dataclass(frozen=True, slots=True)
class Traffic:
    """What is generated. Popularity of rank r = 0, 1, ...: ``(r + 1) ** -exponent``."""

    span_s: float = 3513.0  # the jobs of the streams arrive in so long; longer traffic has as many more
    streams: tuple[Stream, ...] = (Stream("pro", 8819, 13.0, 12.8), Stream("free", 19366, 1.1))
    tenants: int = 4000  # each has jobs of every tier
    tenant_exponent: float = 0.8  # the first of 4,000 tenants has 4.6 % of the jobs
    models: int = 79
    model_exponent: float = 1.0
    model_cutoff: float = 20.0  # popularity falls by e every so many ranks beside; 0 = it does not
    median_s: float = 23.0  # of the lognormal work of a job, on the reference GPU
    sigma: float = 0.6  # of its logarithm
    least_s: float = 5.0  # work is clipped to least_s .. most_s
    most_s: float = 120.0
    least_steps: int = 20  # steps are uniform over least_steps .. most_steps
    most_steps: int = 50
    names: tuple[str, ...] = ()  # of the models, by rank, which goes round; () = model-00, model-01, ...


def generate(traffic: Traffic, seed: int, lasts_s: float = 0.0) -> tuple[Arrival, ...]:
    """Jobs in order of arrival, over ``lasts_s`` seconds (0 = ``span_s``). Times are whole milliseconds."""
    lasts_s = lasts_s or traffic.span_s
    arrivals = [arrival for stream in traffic.streams for arrival in _stream(traffic, stream, seed, lasts_s)]
    return tuple(sorted(arrivals, key=lambda arrival: arrival.at_s))


def write_trace(arrivals: Iterable[Arrival], path: Path) -> None:
    """Write a CSV file that ``read_trace`` reads; gzip when its name ends in ``.gz``.

    Raises SettingsError when it cannot be written.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows((row.at_s, row.tenant, row.tier, row.model, row.work_s, row.steps) for row in arrivals)
    data = text.getvalue().encode()
    try:
        path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    except OSError as error:
        raise SettingsError(f"trace {path} cannot be written: {error}. Name another file.") from None


def _stream(traffic: Traffic, stream: Stream, seed: int, lasts_s: float) -> list[Arrival]:
    rng = random.Random(f"{seed} {stream.tier}")  # noqa: S311  # its own, so that streams do not change each other
    jobs = round(stream.jobs * lasts_s / traffic.span_s)
    tenant = _chooser(traffic.tenants, traffic.tenant_exponent, 0.0, rng)
    model = _chooser(traffic.models, traffic.model_exponent, traffic.model_cutoff, rng)
    names = traffic.names or tuple(f"model-{rank:02d}" for rank in range(traffic.models))
    return [
        Arrival(
            at_s=at_s,
            tenant=f"tenant-{tenant():04d}",
            tier=stream.tier,
            model=names[model() % len(names)],
            work_s=_work_s(traffic, rng),
            steps=rng.randint(traffic.least_steps, traffic.most_steps),
        )
        for at_s in _moments(stream, jobs, lasts_s, rng)
    ]


def _work_s(traffic: Traffic, rng: random.Random) -> float:
    work_s = traffic.median_s * math.exp(rng.gauss(0.0, traffic.sigma))
    return round(min(max(work_s, traffic.least_s), traffic.most_s), 3)


def _chooser(count: int, exponent: float, cutoff: float, rng: random.Random) -> Callable[[], int]:
    """Draws ranks by Zipf's law with an exponential cutoff."""
    falls = 1.0 / cutoff if cutoff else 0.0
    weights = accumulate((rank + 1) ** -exponent * math.exp(-rank * falls) for rank in range(count))
    ends = list(weights)
    return lambda: min(bisect(ends, rng.random() * ends[-1]), count - 1)


def _moments(stream: Stream, jobs: int, lasts_s: float, rng: random.Random) -> list[float]:
    """``jobs`` moments that fill ``lasts_s``, in order."""
    if not jobs:
        return []
    if stream.peak:
        gaps = _bursts(stream, jobs, lasts_s, rng)
    else:
        shape = stream.cv**-2
        gaps = [rng.gammavariate(shape, 1.0) for _ in range(jobs)]
    ends = list(accumulate([*gaps, sum(gaps) / jobs]))  # a gap after the last, too: none is at the very end
    scale = lasts_s / (ends[-1] or 1.0)  # gaps of a huge cv can all be 0
    return [math.floor(1000.0 * end * scale) / 1000.0 for end in ends[:-1]]


def _bursts(stream: Stream, jobs: int, lasts_s: float, rng: random.Random) -> list[float]:
    """Gaps of bursts at ``peak`` times the mean rate, with pauses between them that make up for it.

    Pauses and bursts have exponential lengths. There are as many pauses as give the gaps their ``cv``.
    """
    quiet = 1.0 - 1.0 / stream.peak
    wanted = 2.0 * jobs * quiet**2 / (1.0 + stream.cv**2 - 2.0 / stream.peak**2)
    count = min(max(1, round(wanted)), jobs)
    pauses = [pause * lasts_s * quiet for pause in _lengths(count, rng)]
    ends = [round(jobs * end) for end in accumulate(_lengths(count, rng))]
    pause_before = dict(zip([0, *ends[:-1]], pauses, strict=True))
    spacing_s = lasts_s / jobs / stream.peak
    return [pause_before.get(job, 0.0) + rng.expovariate(1.0 / spacing_s) for job in range(jobs)]


def _lengths(count: int, rng: random.Random) -> list[float]:
    """Exponential lengths that add up to 1, in random order."""
    # Quantiles: free draws of so few would make the cv vary too much by seed.
    lengths = [-math.log(1.0 - (rank + 0.5) / count) for rank in range(count)]
    rng.shuffle(lengths)
    return [length / sum(lengths) for length in lengths]
