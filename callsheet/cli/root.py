"""The tree of commands. Each loads when it runs."""

from __future__ import annotations

import click

from callsheet._version import __version__
from callsheet.cli.group import Group, Late
from callsheet.cli.options import common

COMMANDS = {
    "job": Late("callsheet.cli.job:job", "Submit jobs, follow them, fetch their films."),
    "gpu": Late("callsheet.cli.gpu:gpu", "See the GPUs, take them out of service and put them back."),
    "models": Late(
        "callsheet.cli.models:models", "See the models that can be served, or build the tiny ones."
    ),
    "up": Late("callsheet.cli.up:up", "Run the whole stack on this machine until Ctrl-C."),
    "worker": Late("callsheet.cli.worker:worker", "Run a worker on each GPU of this machine until Ctrl-C."),
    "doctor": Late(
        "callsheet.cli.doctor:doctor", "Check this deployment and say what to do about each finding."
    ),
    "explain": Late(
        "callsheet.cli.explain:explain",
        "Say where a job is and why: what stands before it, which GPUs could run it, what was decided.",
    ),
    "rebalance": Late(
        "callsheet.cli.rebalance:rebalance",
        "Let the controllers look now, or show what they would do and why.",
    ),
    "simulate": Late(
        "callsheet.cli.simulate:simulate", "Replay traffic on a simulated fleet and measure policies."
    ),
    "config": Late("callsheet.cli.config:config", "Show every setting with its value, source and meaning."),
}


@click.group(
    cls=Group,
    late=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Settings come from CALLSHEET_* variables and callsheet.toml: see `callsheet config`. "
    "Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 timeout, 5 broker unreachable, 6 refused.",
)
@click.version_option(__version__, prog_name="callsheet", message="%(prog)s %(version)s")
@common
def root() -> None:
    """Schedule video-generation jobs over a fleet of unlike GPUs."""
