"""Faults of settings: finding them all, and saying each so that it can be put right."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from callsheet.errors import SettingsError
from callsheet.settings.masking import MASK, mask_url
from callsheet.settings.values import convert, show

Field = dataclasses.Field[Any]


def value_faults(fields: Iterable[Field], values: Mapping[str, Any], origins: Mapping[str, str]) -> list[str]:
    """Every fault of ``values``: each for itself, then those that only show together."""
    present = {field.name: field for field in fields if field.name in values}
    texts = {name: _fault(field, values[name], origins[name]) for name, field in present.items()}
    bad = {name for name, text in texts.items() if text}
    # a value that was copied from a faulty one is no second fault
    single = [
        text for name, text in texts.items() if text and origins[name].removeprefix("default: ") not in bad
    ]
    sound = {name: field for name, field in present.items() if name not in bad}
    return single + _pair_faults(sound, values, origins)


def _fault(field: Field, value: object, origin: str) -> str:
    try:
        convert(str(field.type), value)
    except ValueError as error:
        return say(field, value, origin, str(error))
    if isinstance(value, float) and not math.isfinite(value):
        return say(field, value, origin, "is not finite")
    what = field.metadata["allowed"].fault(value)
    return say(field, value, origin, what) if what else ""


def say(field: Field, value: object, origin: str, what: str) -> str:
    """One fault: name, value (masked), where it came from, what is wrong, what is allowed."""
    return f"{field.name} = {masked(field, value)} (from {origin}) {what}; allowed: {_allowed(field)}"


def _allowed(field: Field) -> str:
    text: str = field.metadata["allowed"].text
    return f"{text} {field.metadata['unit']}".rstrip() if field.type in ("int", "float") else text


def masked(field: Field, value: object) -> str:
    """A value that may be shown: secrets as ``***``, URLs without passwords."""
    if field.metadata["secret"]:
        return MASK if value else ""
    return mask_url(show(value)) if field.metadata["unit"] == "URL" else show(value)


def unknown(name: str, origin: str, known: Collection[str], spell: Callable[[str], str] = str) -> str:
    """Fault of a name that is no setting, and the nearest; ``spell`` writes names as their source does."""
    import difflib  # only a faulty start needs it

    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f"did you mean {spell(near[0])}?" if near else "`callsheet config` lists every setting"
    return f"{spell(name)} (from {origin}) is not a setting; {hint}"


def raise_faults(faults: Collection[str]) -> None:
    """Raise SettingsError with all of ``faults``, if there are any."""
    if faults:
        head = "1 setting is wrong" if len(faults) == 1 else f"{len(faults)} settings are wrong"
        raise SettingsError(
            "\n  - ".join([f"{head}; nothing was started. Correct and start again:", *faults])
        )


@dataclass(frozen=True, slots=True)
class _Pair:
    """Settings that must agree: ``fault(*values of names)`` answers "" or what is wrong."""

    names: tuple[str, ...]
    fault: Callable[..., str]


def _renewal(renew_s: float, lease_s: float) -> str:
    if renew_s < lease_s / 2:
        return ""
    return (
        f"renew_s must be less than half of lease_s ({lease_s / 2:g}), so that one lost renewal costs no job"
    )


def _retention(retention_s: float, lease_s: float) -> str:
    return "" if retention_s > lease_s else f"retention_s must be more than lease_s ({lease_s:g})"


def _keys(key_id: str, secret: str) -> str:
    return "" if bool(key_id) == bool(secret) else "set both S3 keys, or neither to use the AWS_* variables"


def _tls(endpoint: str, allow_http: bool) -> str:
    return (
        "set s3_allow_http = true, or use https://"
        if endpoint.startswith("http://") and not allow_http
        else ""
    )


def _classes(gpus: tuple[str, ...], gpu_classes: tuple[str, ...]) -> str:
    foreign = [gpu for gpu in gpus if gpu_classes and gpu.partition(":")[0] not in gpu_classes]
    return f"gpus names {', '.join(foreign)}, which gpu_classes does not allow" if foreign else ""


_PAIRS = (
    _Pair(("renew_s", "lease_s"), _renewal),
    _Pair(("retention_s", "lease_s"), _retention),
    _Pair(("s3_access_key_id", "s3_secret_access_key"), _keys),
    _Pair(("s3_endpoint", "s3_allow_http"), _tls),
    _Pair(("gpus", "gpu_classes"), _classes),
)


def _pair_faults(
    sound: Mapping[str, Field], values: Mapping[str, Any], origins: Mapping[str, str]
) -> list[str]:
    checked = [pair for pair in _PAIRS if all(name in sound for name in pair.names)]
    found = [(pair.names, pair.fault(*(values[name] for name in pair.names))) for pair in checked]

    def shown(name: str) -> str:
        return f"{name} = {masked(sound[name], values[name])} (from {origins[name]})"

    return [f"{', '.join(map(shown, names))}: {what}" for names, what in found if what]
