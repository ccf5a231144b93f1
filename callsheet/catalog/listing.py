"""The catalog: every model that this deployment can serve."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from callsheet.catalog.entries import EntryFaults, is_folder, read_entry
from callsheet.errors import RequestError, SettingsError
from callsheet.records.models import ModelSpec

BUILT_IN = Path(__file__).with_name("models.toml")


class Catalog:
    """Models by name, in the order of the files; iterating gives their :class:`ModelSpec`."""

    def __init__(self, specs: Mapping[str, ModelSpec], models_dir: Path) -> None:
        self._specs, self._models_dir = dict(specs), models_dir

    def __iter__(self) -> Iterator[ModelSpec]:
        return iter(self._specs.values())

    def __len__(self) -> int:
        return len(self._specs)

    def __contains__(self, name: object) -> bool:
        return name in self._specs

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all models."""
        return tuple(self._specs)

    def get(self, name: str) -> ModelSpec:
        """The model of that name. Raises RequestError with the nearest names."""
        if name not in self._specs:
            raise RequestError(f"model {name[:64]!r} is not in the catalog; {self.hint(name)}")
        return self._specs[name]

    def hint(self, name: str) -> str:
        """What to write instead of an unknown name."""
        near = difflib.get_close_matches(name[:64].lower(), self._specs, n=3, cutoff=0.5)
        return f"did you mean {' or '.join(near)}?" if near else f"allowed: {', '.join(self._specs)}"

    def resolve_source(self, spec: ModelSpec) -> str:
        """Where the weights are: an absolute folder, or a hub id as it stands in the catalog."""
        if not is_folder(spec.source):
            return spec.source
        folder = Path(spec.source.replace("{models_dir}", str(self._models_dir)))
        return str(folder.expanduser().absolute())


def load_catalog(extra: str | Path = "", models_dir: Path = Path("models")) -> Catalog:
    """The built-in models, and those of the TOML file ``extra`` added or put in their place.

    ``models_dir`` is what ``{models_dir}`` in a source stands for. Raises SettingsError that lists every
    fault with file and entry.
    """
    specs, faults = _read(BUILT_IN)
    if extra:
        more, more_faults = _read(Path(extra))
        specs, faults = specs | more, faults + more_faults
    if faults:
        raise SettingsError(
            "\n  - ".join(
                ["the catalog of models is wrong; nothing was started. Correct and start again:", *faults]
            )
        )
    return Catalog(specs, models_dir)


def _read(path: Path) -> tuple[dict[str, ModelSpec], list[str]]:
    """(models, faults) of one file."""
    try:
        with path.open("rb") as stream:
            tables = tomllib.load(stream)
    except OSError as error:
        return {}, [f"{path} cannot be read: {error.strerror}; the setting catalog names it"]
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        return {}, [f"{path} is not TOML: {error}"]
    specs: dict[str, ModelSpec] = {}
    faults: list[str] = []
    for name, table in tables.items():
        try:
            specs[name] = read_entry(name, table)
        except EntryFaults as error:
            faults += [f"{path} [{name}]: {fault}" for fault in error.faults]
    return specs, faults
