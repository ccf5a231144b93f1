"""Finding GPUs: a hand-written NVML in place of a driver, real NVML errors, declared GPUs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pynvml
import pytest

from callsheet.errors import SettingsError
from callsheet.records.gpus import GPU_CLASSES
from callsheet.routing.classes import covers
from callsheet.workers.devices import NAMES, Device, classify, discover

MIB = 2**20


def error(code: int) -> Exception:
    made: Exception = pynvml.NVMLError(code)
    return made


@dataclass
class Memory:
    total: int


@dataclass
class Card:
    """One card as NVML would tell of it."""

    product: str
    mib: int
    uuid: str = "GPU-0"
    capability: tuple[int, int] | None = None  # CUDA compute capability; None: cannot be asked
    slices: list[Card | None] | None = None  # MIG mode with these slots; None in the list: an empty slot
    fails: int = 0  # NVML error code of every question about it
    no_mig: bool = False  # the MIG question is not supported


@dataclass
class FakeNvml:
    """NVML's calls over a list of cards."""

    cards: list[Card] = field(default_factory=list)
    init_error: int = 0
    as_bytes: bool = False  # how old versions of pynvml answer
    shut: bool = False

    def nvmlInit(self) -> None:
        if self.init_error:
            raise error(self.init_error)

    def nvmlShutdown(self) -> None:
        self.shut = True

    def nvmlDeviceGetCount(self) -> int:
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Card:
        card = self.cards[index]
        if card.fails:
            raise error(card.fails)
        return card

    def nvmlDeviceGetName(self, handle: Card) -> str | bytes:
        return handle.product.encode() if self.as_bytes else handle.product

    def nvmlDeviceGetUUID(self, handle: Card) -> str | bytes:
        return handle.uuid.encode() if self.as_bytes else handle.uuid

    def nvmlDeviceGetMemoryInfo(self, handle: Card) -> Memory:
        return Memory(handle.mib * MIB)

    def nvmlDeviceGetCudaComputeCapability(self, handle: Card) -> Sequence[int]:
        if handle.capability is None:
            raise error(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return handle.capability

    def nvmlDeviceGetMigMode(self, handle: Card) -> Sequence[int]:
        if handle.no_mig:
            raise error(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return [0, 0] if handle.slices is None else [1, 1]

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: Card) -> int:
        return len(handle.slices or [])

    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: Card, index: int) -> Any:
        assert device.slices is not None
        if device.slices[index] is None:
            raise error(pynvml.NVML_ERROR_NOT_FOUND)
        return device.slices[index]


#: What real cards say: product name, NVML's total in MiB, the class that they are.
REAL = [
    ("Tesla T4", 15360, "t4"),
    ("Tesla T4", 15109, "t4"),
    ("NVIDIA L4", 23034, "l4"),
    ("NVIDIA A10G", 23028, "a10g"),
    ("NVIDIA GeForce RTX 4090", 24564, "rtx4090"),
    ("NVIDIA GeForce RTX 5090", 32607, "rtx5090"),
    ("NVIDIA A100-SXM4-40GB", 40536, "a100-40g"),
    ("NVIDIA A100-PCIE-40GB", 40960, "a100-40g"),
    ("NVIDIA L40S", 46068, "l40s"),
    ("NVIDIA RTX 6000 Ada Generation", 49140, "rtx6000ada"),
    ("NVIDIA A100-SXM4-80GB", 81920, "a100"),
    ("NVIDIA A100 80GB PCIe", 81920, "a100"),
    ("NVIDIA H100 80GB HBM3", 81559, "h100"),
    ("NVIDIA H100 NVL", 95830, "h100"),
    ("NVIDIA H200", 143771, "h200"),
    ("NVIDIA B200", 183359, "b200"),
]

#: Cards without a class of their own, and what they work as: the largest class that they can stand in for.
UNKNOWN = [
    ("NVIDIA A10", 23028, (8, 6), "a10g"),
    ("NVIDIA L40", 46068, (8, 9), "l40s"),
    ("Tesla V100-SXM2-32GB", 32768, (7, 0), "t4"),  # no bf16, so only a class that promises none
    ("NVIDIA RTX A6000", 49140, (8, 6), "a100-40g"),
    ("NVIDIA GH200 480GB", 97871, (9, 0), "a100"),
    ("NVIDIA RTX PRO 6000 Blackwell", 97887, (12, 0), "a100"),
    ("NVIDIA GeForce RTX 4090 Laptop GPU", 16376, (8, 9), "t4"),  # the name of a class, but not its memory
    ("GRID A100-20C", 20480, None, "t4"),
]


class TestClasses:
    @pytest.mark.parametrize(("product", "mib", "expected"), REAL)
    def test_real_names_and_sizes(
        self, product: str, mib: int, expected: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        (device,) = discover(nvml=FakeNvml([Card(product, mib)]))
        assert device.gpu_class == expected
        assert device.vram_gib == mib // 1024
        assert covers(device.vram_gib, device.gpu_class, expected), "it may serve the queues of its own class"
        assert not caplog.records

    @pytest.mark.parametrize(("product", "mib", "capability", "expected"), UNKNOWN)
    def test_unknown_names_work_as_a_class_that_they_cover_with_a_warning(
        self,
        product: str,
        mib: int,
        capability: tuple[int, int] | None,
        expected: str,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        (device,) = discover(nvml=FakeNvml([Card(product, mib, capability=capability)]))
        assert device.gpu_class == expected
        assert covers(device.vram_gib, device.gpu_class, expected)
        assert product in caplog.text
        assert expected in caplog.text

    def test_a_card_that_is_too_small_for_every_class_is_left_out(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        devices = discover(
            nvml=FakeNvml([Card("NVIDIA GeForce RTX 3060", 12288), Card("NVIDIA L4", 23034, "GPU-1")])
        )
        assert [device.name for device in devices] == ["l4-0"]
        assert "too small" in caplog.text

    def test_every_known_class_has_a_name_to_be_found_by(self) -> None:
        assert {name for _, names in NAMES for name in names} == {known.name for known in GPU_CLASSES}

    def test_a_name_is_matched_by_whole_words(self) -> None:
        found = classify("NVIDIA L4000X", 500, features=3)
        assert found is not None
        assert found.name == "b200", "neither L4 nor L40S"


class TestCards:
    def test_names_count_per_class_in_nvmls_order(self) -> None:
        nvml = FakeNvml(
            [
                Card("NVIDIA H100 80GB HBM3", 81559, "GPU-a"),
                Card("NVIDIA A100-SXM4-80GB", 81920, "GPU-b"),
                Card("NVIDIA H100 80GB HBM3", 81559, "GPU-c"),
            ]
        )
        assert discover(nvml=nvml) == [
            Device("h100-0", "h100", 79, "GPU-a", 0),
            Device("a100-0", "a100", 80, "GPU-b", 1),
            Device("h100-1", "h100", 79, "GPU-c", 2),
        ]
        assert nvml.shut

    def test_old_bindings_that_answer_bytes(self) -> None:
        (device,) = discover(nvml=FakeNvml([Card("NVIDIA L4", 23034, "GPU-x")], as_bytes=True))
        assert (device.name, device.uuid) == ("l4-0", "GPU-x")

    def test_cards_before_mig(self) -> None:
        (device,) = discover(nvml=FakeNvml([Card("Tesla T4", 15360, no_mig=True)]))
        assert device.name == "t4-0"

    def test_a_card_that_fell_off_the_bus_does_not_stop_the_others(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        lost = Card("NVIDIA L4", 23034, fails=pynvml.NVML_ERROR_GPU_IS_LOST)
        devices = discover(nvml=FakeNvml([lost, Card("NVIDIA L4", 23034, "GPU-1")]))
        assert [(device.name, device.index) for device in devices] == [("l4-0", 1)]
        assert "GPU 0 does not answer" in caplog.text

    def test_the_worker_of_a_device(self) -> None:
        gpu = Device("h100-0", "h100", 79, "GPU-a", 3).worker("node7")
        assert (gpu.name, gpu.host, gpu.index, gpu.uuid, gpu.declared) == (
            "h100-0@node7",
            "node7",
            3,
            "GPU-a",
            False,
        )


class TestMig:
    def test_slices_are_devices_of_their_own_and_the_card_is_none(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        slices = [
            Card("NVIDIA A100-SXM4-80GB MIG 3g.40gb", 40448, "MIG-1"),
            None,
            Card("NVIDIA A100-SXM4-80GB", 40448, "MIG-2"),  # as older drivers name a slice
            Card("NVIDIA A100-SXM4-80GB MIG 1g.10gb", 9728, "MIG-3"),  # too small for anything
        ]
        cards = [
            Card("NVIDIA A100-SXM4-80GB", 81920, "GPU-0", (8, 0), slices),
            Card("NVIDIA A100-SXM4-80GB", 81920, "GPU-1"),
        ]
        with caplog.at_level(logging.INFO):
            devices = discover(nvml=FakeNvml(cards))
        assert [(device.name, device.uuid, device.index) for device in devices] == [
            ("a100-40g-0", "MIG-1", 0),
            ("a100-40g-1", "MIG-2", 0),
            ("a100-0", "GPU-1", 1),
        ]

    def test_mig_mode_without_slices(self, caplog: pytest.LogCaptureFixture) -> None:
        empty = Card("NVIDIA H100 80GB HBM3", 81559, slices=[None])
        with pytest.raises(SettingsError, match="No GPU was found"):
            discover(nvml=FakeNvml([empty]))
        assert "nvidia-smi mig" in caplog.text


class TestNothing:
    @pytest.mark.parametrize(
        ("code", "says"),
        [
            (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "Shared Library Not Found"),
            (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded"),
            (pynvml.NVML_ERROR_NO_PERMISSION, "Insufficient Permissions"),
        ],
    )
    def test_no_driver(self, code: int, says: str) -> None:
        with pytest.raises(SettingsError, match=says) as caught:
            discover(nvml=FakeNvml(init_error=code))
        assert 'CALLSHEET_GPUS="h100,a100"' in str(caught.value)
        assert "nvidia-smi" in str(caught.value)

    def test_a_driver_without_cards(self) -> None:
        with pytest.raises(SettingsError, match="NVML lists none"):
            discover(nvml=FakeNvml())


class TestDeclared:
    def test_declared_gpus_ask_nobody(self) -> None:
        nvml = FakeNvml(init_error=pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
        assert discover(("h100", "a100:40", "h100"), nvml=nvml, visible="") == [
            Device("h100-0", "h100", 80, "declared-0", 0, declared=True),
            Device("a100-40g-0", "a100-40g", 40, "declared-1", 1, declared=True),
            Device("h100-1", "h100", 80, "declared-2", 2, declared=True),
        ]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("h100:94", "h100"),
            ("h100:40", "a100-40g"),
            ("a100:40", "a100-40g"),
            ("t4:16", "t4"),
            ("l4:16", "t4"),
        ],
    )
    def test_a_part_of_a_card_works_as_a_class_whose_queues_it_can_serve(
        self, text: str, expected: str
    ) -> None:
        (device,) = discover((text,))
        assert device.gpu_class == expected
        assert covers(device.vram_gib, device.gpu_class, expected)

    @pytest.mark.parametrize("text", ["h900", "h100:", "h100:many", "h100:0", "h100:8"])
    def test_faults_are_told(self, text: str) -> None:
        with pytest.raises(SettingsError):
            discover((text,))


class TestVisible:
    CARDS: ClassVar = [Card("NVIDIA L4", 23034, f"GPU-{letter}{letter}") for letter in "abc"]

    @pytest.mark.parametrize(
        ("visible", "names"),
        [
            (None, ["l4-0", "l4-1", "l4-2"]),
            ("GPU-bb", ["l4-1"]),
            ("GPU-c,GPU-a", ["l4-0", "l4-2"]),
            ("0, 2", ["l4-0", "l4-2"]),
        ],
    )
    def test_what_the_operator_hid_stays_hidden_and_names_stay(
        self, visible: str | None, names: list[str]
    ) -> None:
        assert [device.name for device in discover(nvml=FakeNvml(self.CARDS), visible=visible)] == names

    @pytest.mark.parametrize("visible", ["", "-1", "GPU-zz"])
    def test_everything_hidden(self, visible: str) -> None:
        with pytest.raises(SettingsError, match="hides every GPU"):
            discover(nvml=FakeNvml(self.CARDS), visible=visible)
