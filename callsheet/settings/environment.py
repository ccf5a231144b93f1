"""The way back: settings as the variables that give the same settings to another process."""

from __future__ import annotations

from callsheet.settings.schema import FIELDS, Settings
from callsheet.settings.sources import PREFIX
from callsheet.settings.values import show


def to_env(settings: Settings) -> dict[str, str]:
    """``CALLSHEET_*`` variables for a child process. Passwords are in there: hand it to nobody else."""
    return {PREFIX + field.name.upper(): show(getattr(settings, field.name)) for field in FIELDS}
