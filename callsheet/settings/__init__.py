"""Settings: one typed object from defaults, a TOML file and ``CALLSHEET_*`` variables.

::

    schema.py    every setting with default, unit, meaning and what is allowed
    load.py      load(): all sources into one Settings, all faults into one error
    sources.py   what a file and the environment say     values.py   text to typed values
    allowed.py   the rules a value must obey             checks.py   finding and wording faults
    derive.py    defaults that depend on other settings  masking.py  hiding passwords
    environment.py  settings as variables for a child process
    urls.py      one Redis URL in the spellings of its three readers
"""

from __future__ import annotations

from callsheet.settings.derive import SERVER_URL_FILE
from callsheet.settings.environment import to_env
from callsheet.settings.load import load
from callsheet.settings.masking import mask_url
from callsheet.settings.schema import Row, Settings, describe

__all__ = ["SERVER_URL_FILE", "Row", "Settings", "describe", "load", "mask_url", "to_env"]
