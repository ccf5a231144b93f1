"""``callsheet rebalance``: what the controllers would do now, or let them do it now."""

from __future__ import annotations

import click

from callsheet.cli.door import client
from callsheet.cli.options import common, json_wanted
from callsheet.cli.output import emit, say


@click.command()
@click.option("--dry-run", is_flag=True, help="Only show what a tick would do now, and why.")
@common
def rebalance(dry_run: bool) -> None:
    """Let the controllers look now, or show what they would do and why."""
    if not dry_run:
        client().ask_tick()
        if json_wanted():
            emit({"asked": True})
        say("asked for a tick: controllers run at most one in each period (setting tick_s)")
        return
    from callsheet.cli.rebalance_view import foreseen_document, foreseen_tables

    seen = client().foresee()
    emit(foreseen_document(seen), *foreseen_tables(seen))
