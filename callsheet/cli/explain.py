"""``callsheet explain``: where a job is, and why."""

from __future__ import annotations

import click

from callsheet.cli.door import client
from callsheet.cli.options import common
from callsheet.cli.output import emit


@click.command()
@click.argument("job_id", metavar="JOB")
@common
def explain(job_id: str) -> None:
    """Say where a job is and why: what stands before it, which GPUs could run it, what was decided."""
    from callsheet.cli.explain_view import explain_document, explain_tables
    from callsheet.cli.waiting import waits_for

    door = client()
    found = door.explain(job_id)
    ahead = found.place.jobs if found.place else None
    why = waits_for(found.job, door.gpus(), ahead=ahead, orders=door.gpu_orders())
    emit(explain_document(found, why), *explain_tables(found, why))
