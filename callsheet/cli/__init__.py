"""The command line. Data goes to stdout, talk to stderr; nothing heavy is loaded before a command runs.

::

    run.py       one call: arguments in, exit code out        failures.py  errors to messages and exit codes
    root.py      the tree of commands                         group.py     groups that load late, and suggest
    options.py   -o and --debug, --as, durations              output.py    one document as JSON or tables
    table.py     tables to text                               words.py     numbers and times for people
    door.py      the client, loaded late
    job.py, job_act.py, gpu.py, models.py, config.py, up.py, worker.py, doctor.py, simulate.py, explain.py,
    rebalance.py: the commands, with their job_view.py, attempt_view.py, gpu_view.py, model_view.py,
    explain_view.py, rebalance_view.py (what they show), waiting.py (why a job waits), checks.py, probes.py
    (doctor's)
"""

from __future__ import annotations

from callsheet.cli.run import main

__all__ = ["main"]
