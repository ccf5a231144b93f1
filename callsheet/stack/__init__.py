"""The whole stack on one machine: an embedded server, GPU workers, beats, controllers and Flower.

::

    binary.py    which server binary to run          embedded.py  running it: lock, port, password, URL file
    plan.py      settings -> what is to run (pure)   checks.py    when each part is ready
    preflight.py what is looked at before            up.py        `callsheet up`
    part.py      one part alone, for the Procfile
"""

from callsheet.stack.up import UpOptions, run_up

__all__ = ["UpOptions", "run_up"]
