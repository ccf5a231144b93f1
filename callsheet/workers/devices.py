"""The GPUs of this machine: found by NVML, or declared in the settings."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from callsheet.errors import SettingsError
from callsheet.records.gpus import Gpu, GpuClass
from callsheet.routing.classes import KNOWN, parse_declared

log = logging.getLogger(__name__)

GIB = 2**30
MIG_ENABLED = 1  # NVML_DEVICE_MIG_ENABLE

#: NVML product names, as whole words, and the classes that they can be; the memory decides among these.
NAMES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"B200", ("b200",)),
    (r"H200", ("h200",)),
    (r"H100", ("h100",)),
    (r"A100", ("a100", "a100-40g")),
    (r"RTX 6000 Ada", ("rtx6000ada",)),
    (r"L40S", ("l40s",)),
    (r"RTX 5090", ("rtx5090",)),
    (r"RTX 4090", ("rtx4090",)),
    (r"A10G", ("a10g",)),
    (r"L4", ("l4",)),
    (r"T4", ("t4",)),
)

#: First compute capability with bf16 (Ampere), fp8 (Ada), fp4 (Blackwell): ranks 1 to 3 of GpuClass.features.
FIRST_CAPABILITIES = ((8, 0), (8, 9), (10, 0))


class Nvml(Protocol):
    """The part of the module ``pynvml`` that is used here."""

    def nvmlInit(self) -> None: ...  # noqa: D102, N802
    def nvmlShutdown(self) -> None: ...  # noqa: D102, N802
    def nvmlDeviceGetCount(self) -> int: ...  # noqa: D102, N802
    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any: ...  # noqa: D102, N802
    def nvmlDeviceGetName(self, handle: Any) -> str | bytes: ...  # noqa: D102, N802
    def nvmlDeviceGetUUID(self, handle: Any) -> str | bytes: ...  # noqa: D102, N802
    def nvmlDeviceGetMemoryInfo(self, handle: Any) -> Any: ...  # noqa: D102, N802
    def nvmlDeviceGetCudaComputeCapability(self, handle: Any) -> Sequence[int]: ...  # noqa: D102, N802
    def nvmlDeviceGetMigMode(self, handle: Any) -> Sequence[int]: ...  # noqa: D102, N802
    def nvmlDeviceGetMaxMigDeviceCount(self, handle: Any) -> int: ...  # noqa: D102, N802
    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: Any, index: int) -> Any: ...  # noqa: D102, N802


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU (or MIG slice) that gets a worker."""

    name: str  # h100-0: class, and a count per class in NVML's order; unique on this machine
    gpu_class: str
    vram_gib: int  # memory it has, rounded down
    uuid: str  # what CUDA_VISIBLE_DEVICES takes: NVML and CUDA number cards differently; "declared-<n>"
    index: int  # of the card in NVML, or in the declaration
    declared: bool = False  # True: no hardware was looked at

    def worker(self, host: str) -> Gpu:
        """The GPU as its worker ``h100-0@host`` registers it."""
        return Gpu(
            f"{self.name}@{host}",
            self.gpu_class,
            self.vram_gib,
            self.uuid,
            host,
            self.index,
            declared=self.declared,
        )


@dataclass(frozen=True, slots=True)
class _Card:
    """What NVML says about one card or MIG slice."""

    index: int
    product: str
    uuid: str
    vram_gib: int
    features: int  # rank of its generation, as in GpuClass


def discover(
    declared: Sequence[str] = (), *, nvml: Nvml | None = None, visible: str | None = None
) -> list[Device]:
    """The GPUs of this machine: the declared ones (``h100``, ``a100:40``) if there are any, else what NVML
    finds.

    ``visible`` is CUDA_VISIBLE_DEVICES as the operator set it (None: not set): UUIDs or their beginnings, or
    NVML indexes; others are left alone. Raises SettingsError when there is no GPU at all.
    """
    if declared:
        return _numbered(_declare(declared))
    if nvml is None:
        import pynvml

        nvml = pynvml
    found = _numbered(_classify(_cards(nvml)))
    devices = [device for device in found if visible is None or _is_visible(device, visible)]
    if not devices:
        raise SettingsError(
            _nothing(f"CUDA_VISIBLE_DEVICES={visible} hides every GPU" if found else "NVML lists none")
        )
    return devices


def _nothing(why: str) -> str:
    return (
        f"No GPU was found on this machine: {why}. Nothing was started. With an NVIDIA GPU, install its "
        "driver (`nvidia-smi` must list the GPU); without one, declare some, and models run on the CPU: "
        'CALLSHEET_GPUS="h100,a100"'
    )


def _declare(declared: Iterable[str]) -> Iterator[Device]:
    for index, text in enumerate(declared):
        named, vram_gib = parse_declared(text)
        gpu_class = named if has_memory_of(vram_gib, named) else _stand_in(vram_gib, named.features)
        if gpu_class is None:
            raise SettingsError(
                f"declared GPU {text!r} is too small for every known GPU class; declare more memory"
            )
        yield Device("", gpu_class.name, vram_gib, f"declared-{index}", index, declared=True)


def _numbered(devices: Iterable[Device]) -> list[Device]:
    """Give each its name. Before anything is hidden, so that a name always means the same card."""
    seen: Counter[str] = Counter()
    named = []
    for device in devices:
        named.append(replace(device, name=f"{device.gpu_class}-{seen[device.gpu_class]}"))
        seen[device.gpu_class] += 1
    return named


def _is_visible(device: Device, visible: str) -> bool:
    wanted = [entry.strip() for entry in visible.split(",")]
    return any(device.uuid.startswith(w) if not w.isdigit() else int(w) == device.index for w in wanted if w)


# -- classes


def _classify(cards: Iterable[_Card]) -> Iterator[Device]:
    for card in cards:
        gpu_class = classify(card.product, card.vram_gib, card.features)
        if gpu_class is None:
            log.warning(
                "%s (%d GiB) is too small for every known GPU class: not used", card.product, card.vram_gib
            )
        else:
            yield Device("", gpu_class.name, card.vram_gib, card.uuid, card.index)


def classify(product: str, vram_gib: int, features: int) -> GpuClass | None:
    """The class of a GPU by its product name; an unknown one gets the largest class that it can stand in for.

    MIG slices are classed by memory too: their card's class would promise too much. None: too small for any.
    """
    slice_of_card = re.search(r"\bMIG\b", product) is not None
    names = () if slice_of_card else _names(product)
    known = [KNOWN[name] for name in names if has_memory_of(vram_gib, KNOWN[name])]
    if known:
        return known[0]
    nearest = _stand_in(vram_gib, features)
    if nearest is None:
        return None
    level = logging.INFO if slice_of_card else logging.WARNING
    log.log(level, "%s (%d GiB) has no class of its own: it works as %s", product, vram_gib, nearest.name)
    return nearest


def _stand_in(vram_gib: int, features: int) -> GpuClass | None:
    """The largest class that promises no more memory and features than these; the plainest of equal ones."""
    covered = [k for k in KNOWN.values() if has_memory_of(vram_gib, k) and features >= k.features]
    return max(covered, key=lambda c: (c.vram_gib, -c.features, -c.price), default=None)


def _names(product: str) -> tuple[str, ...]:
    return next((names for word, names in NAMES if re.search(rf"\b{word}\b", product)), ())


def has_memory_of(vram_gib: int, gpu_class: GpuClass) -> bool:
    """Whether memory, rounded down to GiB, is what jobs of that class count on."""
    return vram_gib >= int(gpu_class.usable_gib)


# -- NVML


def _cards(nvml: Nvml) -> list[_Card]:
    """Every card and MIG slice. Raises SettingsError when NVML does not start."""
    from pynvml import NVMLError  # real errors, whoever raises them

    try:
        nvml.nvmlInit()
    except NVMLError as error:
        raise SettingsError(_nothing(f"NVML says {error}")) from None
    try:
        return [card for index in range(nvml.nvmlDeviceGetCount()) for card in _card(nvml, index)]
    except NVMLError as error:
        raise SettingsError(_nothing(f"NVML says {error}")) from None
    finally:
        nvml.nvmlShutdown()


def _card(nvml: Nvml, index: int) -> list[_Card]:
    """One card, or its MIG slices; none when it does not answer: the other cards go on."""
    from pynvml import NVMLError

    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        if not _in_mig_mode(nvml, handle):
            return [_describe(nvml, handle, index, card=handle)]
        slices = [_describe(nvml, one, index, card=handle) for one in _mig_handles(nvml, handle)]
    except NVMLError as error:
        log.warning("GPU %d does not answer NVML (%s): not used", index, error)
        return []
    if not slices:
        log.warning(
            "GPU %d is in MIG mode but has no slices: not used; create some with `nvidia-smi mig`", index
        )
    return slices


def _describe(nvml: Nvml, handle: Any, index: int, *, card: Any) -> _Card:
    product, uuid = _text(nvml.nvmlDeviceGetName(handle)), _text(nvml.nvmlDeviceGetUUID(handle))
    if uuid.startswith("MIG-") and "MIG" not in product.split():
        product = f"{product} MIG"  # older drivers name the whole card
    vram_gib = int(nvml.nvmlDeviceGetMemoryInfo(handle).total) // GIB
    return _Card(index, product, uuid, vram_gib, _features(nvml, card))


def _features(nvml: Nvml, handle: Any) -> int:
    """Rank of a card's generation by its CUDA compute capability; 0 where that cannot be asked."""
    from pynvml import NVMLError

    try:
        capability = tuple(nvml.nvmlDeviceGetCudaComputeCapability(handle))
    except NVMLError:
        return 0
    return sum(capability >= first for first in FIRST_CAPABILITIES)


def _in_mig_mode(nvml: Nvml, handle: Any) -> bool:
    from pynvml import NVMLError_NotSupported

    try:
        return nvml.nvmlDeviceGetMigMode(handle)[0] == MIG_ENABLED
    except NVMLError_NotSupported:  # before Ampere
        return False


def _mig_handles(nvml: Nvml, handle: Any) -> Iterator[Any]:
    from pynvml import NVMLError_InvalidArgument, NVMLError_NotFound

    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            yield nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
        except (NVMLError_NotFound, NVMLError_InvalidArgument):  # an empty slot
            continue


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
