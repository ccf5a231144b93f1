"""Every setting, with its default, unit, meaning and what is allowed. Nothing is read from outside here."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from callsheet.settings import allowed
from callsheet.settings.allowed import Rule
from callsheet.settings.checks import masked, raise_faults, value_faults
from callsheet.settings.derive import derive, follows
from callsheet.settings.values import convert

PRESETS = (
    "ultrafast",
    "superfast",
    "veryfast",
    "faster",
    "fast",
    "medium",
    "slow",
    "slower",
    "veryslow",
)


def _setting(default: object, unit: str, meaning: str, rule: Rule, *, secret: bool = False) -> Any:
    """One setting. A default of None is derived from other settings (``derive.py``)."""
    metadata = {"unit": unit, "meaning": meaning, "allowed": rule, "secret": secret}
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Settings:
    """All settings, checked and resolved: ``settings.store_url`` is the URL in use, never "".

    Built directly, what is left out takes its default (files and variables are not looked at; :func:`load`
    does that). Raises SettingsError that lists every fault.
    """

    broker_url: str = _setting(
        None, "URL", "Redis server that carries Celery's messages", allowed.broker_url()
    )
    store_url: str = _setting(
        None, "URL", "Redis server that keeps the records of jobs", allowed.broker_url()
    )
    data_dir: Path = _setting(  # noqa: RUF009
        None, "folder", "what one machine keeps: embedded server, films, models", allowed.anything("a folder")
    )
    storage_url: str = _setting(None, "URL", "where films and checkpoints are stored", allowed.storage_url())
    s3_endpoint: str = _setting(
        "", "URL", "S3 server, when it is not Amazon's; empty = AWS_ENDPOINT_URL", allowed.endpoint_url()
    )
    s3_region: str = _setting("", "", "S3 region; empty = AWS_REGION", allowed.anything("a region's name"))
    s3_access_key_id: str = _setting(
        "", "", "S3 access key; empty = AWS_ACCESS_KEY_ID", allowed.anything("an access key id")
    )
    s3_secret_access_key: str = _setting(
        "",
        "",
        "S3 secret; empty = AWS_SECRET_ACCESS_KEY",
        allowed.anything("a secret access key"),
        secret=True,
    )
    s3_allow_http: bool = _setting(
        False, "", "talk to the S3 server without TLS", allowed.anything("true or false")
    )
    models_dir: Path = _setting(  # noqa: RUF009
        None, "folder", "models that lie in folders (built or downloaded)", allowed.anything("a folder")
    )
    catalog: str = _setting(
        "",
        "file",
        "TOML file whose models join or replace the built-in ones",
        allowed.path_or_empty("a file"),
    )
    gpus: tuple[str, ...] = _setting(
        (), "classes", "GPUs declared for this machine; empty = ask NVML", allowed.declared_gpus()
    )
    gpu_classes: tuple[str, ...] = _setting(
        (),
        "classes",
        "GPU classes that this deployment may have; empty = every known",
        allowed.gpu_class_names(),
    )
    lease_s: float = _setting(
        3.0,
        "s",
        "a running job whose worker is silent for so long is given to another",
        allowed.number(0.1, 3600),
    )
    renew_s: float = _setting(1.0, "s", "how often a worker renews its lease", allowed.number(0.02, 1800))
    yield_grace_s: float = _setting(
        20.0,
        "s",
        "a child that does not obey an order for so long, or three of its steps, is killed",
        allowed.number(0.5, 3600),
    )
    stuck_s: float = _setting(
        900.0,
        "s",
        "a child that shows no progress for so long is killed; 0 = never",
        allowed.number(0, 86400),
    )
    storage_patience_s: float = _setting(
        60.0,
        "s",
        "an object storage that does not answer is asked again for so long, before the job suffers",
        allowed.number(0, 3600),
    )
    checkpoint_interval_s: float = _setting(
        0.0,
        "s",
        "between two background saves of a job; 0 = computed from their cost and the crash rate",
        allowed.number(0, 86400),
    )
    checkpoint_retention_s: float = _setting(
        86400.0,
        "s",
        "checkpoints of a job that failed, expired or was cancelled are kept so long, for a requeue",
        allowed.number(60, 315_360_000),
    )
    tick_s: float = _setting(1.0, "s", "how often the controllers run", allowed.number(0.05, 60))
    max_crashes: int = _setting(
        3, "attempts", "a job that lost so many workers fails", allowed.number(1, 100)
    )
    heal_after_s: float = _setting(
        5.0, "s", "a ticket so old whose queue is empty counts as lost", allowed.number(0.1, 3600)
    )
    retention_s: float = _setting(
        604800.0,
        "s",
        "records and results are kept so long after a job's end",
        allowed.number(60, 315_360_000),
    )
    pro_share: float = _setting(
        0.9,
        "of the GPUs",
        "guaranteed to pro jobs while they ask for it; the rest of the time it is lent",
        allowed.number(0, 1),
    )
    free_share: float = _setting(
        0.05,
        "of the GPUs",
        "guaranteed to free jobs while they ask for it: pro jobs take no more than the rest",
        allowed.number(0, 1),
    )
    free_longest_wait_s: float = _setting(
        3600.0,
        "s",
        "a free job that would wait longer is refused; one that waited most of it goes first; 0 = no bound",
        allowed.number(0, 604_800),
    )
    max_preemptions: int = _setting(
        3, "times", "a job yields its GPU so often, then it is protected", allowed.number(0, 1000)
    )
    load_gb_per_s: float = _setting(
        2.0,
        "GB/s",
        "how fast workers read weights: what a move of a model is reckoned to cost",
        allowed.number(0.01, 1000),
    )
    connect_timeout_s: float = _setting(
        3.0, "s", "give up on a server that does not answer", allowed.number(0.1, 4)
    )
    replica_wait_ms: float = _setting(
        200.0,
        "ms",
        "a submit or an end waits so long for a replica of the store, where one is; 0 = never",
        allowed.number(0, 1000),
    )
    shutdown_grace_s: float = _setting(
        10.0, "s", "at a stop, processes may take so long to end by themselves", allowed.number(0, 3600)
    )
    max_prompt_chars: int = _setting(4000, "characters", "longest prompt", allowed.number(1, 100_000))
    max_resident_models: int = _setting(
        8,
        "models",
        "models whose weights one worker keeps loaded, as far as its memory goes",
        allowed.number(1, 64),
    )
    encode_crf: int = _setting(18, "", "H.264 quality: 0 lossless, 51 worst", allowed.number(0, 51))
    encode_preset: str = _setting("veryfast", "", "H.264 speed against size", allowed.one_of(*PRESETS))
    torch_threads: int = _setting(
        0, "threads", "CPU threads of one worker's torch; 0 = torch's own choice", allowed.number(0, 1024)
    )
    task_always_eager: bool = _setting(
        False, "", "run jobs at once in the calling process", allowed.anything("true or false")
    )
    flower_host: str = _setting(
        "127.0.0.1", "", "address that Flower listens on", allowed.some_text("a host")
    )
    flower_port: int = _setting(
        5555, "port", "port that Flower listens on; 0 = no Flower", allowed.number(0, 65535)
    )
    log_level: str = _setting(
        "INFO",
        "",
        "least severity that is logged",
        allowed.one_of("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
    )
    #: Where each value came from: a variable's name, a file and key, or "default".
    origins: Mapping[str, str] = dataclasses.field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        given = {f.name: value for f in FIELDS if not _missing(f, value := getattr(self, f.name))}
        values, origins = derive(given, {name: self.origins.get(name, "argument") for name in given})
        raise_faults(value_faults(FIELDS, values, origins))
        for field in FIELDS:
            object.__setattr__(self, field.name, convert(str(field.type), values[field.name]))
        object.__setattr__(self, "origins", origins)

    def replace(self, origin: str = "replace()", /, **changes: Any) -> Settings:
        """A copy with some values changed, checked as a whole; what was derived from them follows.

        ``origin`` is where the changes come from, as faults name it: an option of a command. Raises
        SettingsError that lists every fault, TypeError for a name that is no setting.
        """
        kept = {
            f.name: getattr(self, f.name)
            for f in FIELDS
            if f.name not in changes and not self._follows(f.name, changes)
        }
        origins = {name: self.origins[name] for name in kept} | dict.fromkeys(changes, origin)
        return Settings(**kept, **changes, origins=origins)

    def _follows(self, name: str, changes: Collection[str]) -> bool:
        return self.origins[name].startswith("default") and follows(name, changes)

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{row.name}={row.value!r}' for row in describe(self))})"


FIELDS = tuple(field for field in dataclasses.fields(Settings) if field.name != "origins")


def _missing(field: dataclasses.Field[Any], value: object) -> bool:
    """Whether a setting is to be derived: nothing was given, or "" where that means the same."""
    return field.default is None and value in (None, "")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of ``callsheet config``."""

    name: str
    value: str  # secrets and passwords masked
    unit: str
    source: str  # variable, file and key, or "default"
    meaning: str


def describe(settings: Settings) -> tuple[Row, ...]:
    """Every setting with its value (masked), unit, source and meaning, in the order of the class."""
    return tuple(_row(settings, field) for field in FIELDS)


def _row(settings: Settings, field: dataclasses.Field[Any]) -> Row:
    shown = masked(field, getattr(settings, field.name))
    return Row(
        field.name, shown, field.metadata["unit"], settings.origins[field.name], field.metadata["meaning"]
    )
