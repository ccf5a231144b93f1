"""``callsheet simulate``: traffic replayed on a virtual clock."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from callsheet.cli.options import common
from callsheet.cli.output import emit, say
from callsheet.cli.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callsheet.simulator.measures import Measures
    from callsheet.simulator.runs import Outcome
    from callsheet.simulator.scenario import Scenario

#: What runs.py knows, written out: help and completion shall load nothing.
POLICIES = ("callsheet", "fifo", "two-queues", "static", "restart", "pro-only", "all")
File = click.Path(dir_okay=False, path_type=Path)

#: What a narrow terminal leaves out first.
_SPARE = {"moves": 5, "idle": 4, "refused": 3, "took s": 2, "loads": 1}
_SPARE |= {"turnaround p50 s": 3, "turnaround p95 s": 2, "turnaround max s": 1}


@click.command()
@click.argument("scenario", metavar="SCENARIO.toml", type=File)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    type=click.Choice(POLICIES),
    default=("callsheet",),
    help="What to run: callsheet (default), a baseline, pro-only (the first tier alone), or all. Repeatable.",
)
@click.option("--trace", type=File, help="Recorded traffic: a CSV file, plain or gzip (default: generated).")
@click.option("--load", type=click.FloatRange(0), help="Offered work over capacity; 0: as it came.")
@click.option("--seed", type=click.IntRange(0), help="Of all that is random.")
@click.option("--spike", "spikes", multiple=True, help="More traffic: 10x@900s+300s[:TIER]. Repeatable.")
@click.option("--html", type=File, help="Write one page with plots to this file.")
@click.option(
    "--generate", type=File, help="Only write the scenario's generated traffic to this CSV file (.gz: gzip)."
)
@common
def simulate(
    scenario: Path,
    policies: tuple[str, ...],
    trace: Path | None,
    load: float | None,
    seed: int | None,
    spikes: tuple[str, ...],
    html: Path | None,
    generate: Path | None,
) -> None:
    """Replay traffic on a simulated fleet and measure policies."""
    if generate is not None:
        given = {"--trace": trace, "--load": load, "--spike": spikes, "--html": html}
        _check_alone([name for name, value in given.items() if value not in (None, ())])
        _generate(scenario, generate, seed)
        return
    if html is not None and not html.absolute().parent.is_dir():
        raise click.UsageError(f"--html {html}: there is no folder {html.parent}; make it, or name another")

    from callsheet.simulator.reading import read_scenario
    from callsheet.simulator.report import document

    told = read_scenario(scenario, trace=trace, load=load, seed=seed, spikes=spikes)
    outcomes = _run(policies, told)
    if html is not None:
        _write_page(html, told, outcomes)
    measures = [outcome.measures for outcome in outcomes]
    emit(document(told, measures), *tables(measures))


def tables(measures: Sequence[Measures]) -> tuple[Table, Table]:
    """Policies, then waits by policy and tier."""
    from callsheet.simulator.report import POLICY_COLUMNS, WAIT_COLUMNS, policy_rows, wait_rows

    policies, waits = map(_columns, (POLICY_COLUMNS, WAIT_COLUMNS))
    return Table(policies, policy_rows(measures)), Table(waits, wait_rows(measures))


def _columns(names: Sequence[str]) -> list[Column]:
    return [Column(name, right=name not in ("policy", "tier"), spare=_SPARE.get(name, 0)) for name in names]


def _check_alone(others: Sequence[str]) -> None:
    """Raises UsageError when there are others."""
    if others:
        raise click.UsageError(
            f"--generate writes the traffic before anything is run or scaled: leave out {', '.join(others)}"
        )


def _generate(scenario: Path, file: Path, seed: int | None) -> None:
    from callsheet.simulator.generate import write_trace
    from callsheet.simulator.reading import default_trace

    arrivals = default_trace(scenario, seed)
    write_trace(arrivals, file)
    facts = [(str(file), f"{len(arrivals):,}")]
    emit({"path": str(file), "jobs": len(arrivals)}, Table((Column("file"), Column("jobs", True)), facts))


def _run(policies: Sequence[str], scenario: Scenario) -> list[Outcome]:
    from callsheet.simulator.measures import gpus_of
    from callsheet.simulator.runs import named, outcome, scenario_for

    outcomes = []
    for policy in named(policies):
        say(f"{policy}: {len(scenario_for(policy, scenario).arrivals):,} jobs on {gpus_of(scenario):,} GPUs")
        outcomes.append(outcome(policy, scenario))
    return outcomes


def _write_page(file: Path, scenario: Scenario, outcomes: Sequence[Outcome]) -> None:
    from callsheet.simulator.page import page

    file.write_text(page(scenario, outcomes), encoding="utf-8")
    say(f"wrote {file}")
