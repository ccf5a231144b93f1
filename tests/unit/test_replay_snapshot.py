"""A snapshot as bytes: every type comes back as it was, and damage is told from a checkpoint."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from diffusers.models.modeling_outputs import Transformer2DModelOutput

from callsheet.workers.replay import CheckpointRefused, Snapshot, UnknownFormat, dump, parse, read_extra
from callsheet.workers.replay.codec import UnknownType, keep_in, pack, shape_only, unpack

pytestmark = pytest.mark.torch

CPU = torch.device("cpu")
VALUES = [
    None,
    True,
    0,
    -(2**70),
    0.1,
    float("inf"),
    "حرف",
    torch.float16,
    [1, (2.5, None), [], ()],
    {"a": {"b": 1}, 3: "int keys", "none": None},
    np.float32(0.1),
    np.float64(0.1),
    np.int64(2**60),
    np.bool_(True),
]
TENSORS = [
    torch.arange(6).reshape(2, 3).T,
    torch.tensor(1.5),
    torch.zeros(0, 3, dtype=torch.bfloat16),
    torch.tensor([1e-40, -0.0, float("nan")]),
    torch.randn(3, dtype=torch.float64).to(torch.bfloat16),
    torch.tensor([True, False]),
    torch.tensor([-1], dtype=torch.int8),
]
ARRAYS = [
    np.arange(4.0)[::-1],
    np.array([1, 2], dtype=">i4"),
    np.array([[True]]),
    np.array(2.5),
]


def there_and_back(value: Any) -> Any:
    """Through the tree, JSON and safetensors."""
    tensors: dict[str, torch.Tensor] = {}
    node = pack(value, "x", keep_in(tensors))
    snapshot = parse(dump(Snapshot(tensors, {"node": node}, 1), {}))
    return unpack(snapshot.meta["node"], snapshot.tensors, CPU)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_plain_values_keep_value_and_type(value: Any) -> None:
    back = there_and_back(value)
    assert back == value
    assert type(back) is type(value)


def test_not_a_number_survives() -> None:
    assert np.isnan(there_and_back(float("nan")))


@pytest.mark.parametrize("tensor", TENSORS, ids=lambda one: f"{one.dtype} {tuple(one.shape)}")
def test_tensors_keep_their_bits(tensor: torch.Tensor) -> None:
    back = there_and_back([tensor])[0]
    assert (back.dtype, back.shape) == (tensor.dtype, tensor.shape)
    assert (
        back.view(torch.uint8).equal(tensor.contiguous().view(torch.uint8)) if tensor.ndim else back == tensor
    )


@pytest.mark.parametrize("array", ARRAYS, ids=repr)
def test_arrays_keep_their_numbers(array: Any) -> None:
    back = there_and_back(array)
    assert back.dtype == array.dtype.newbyteorder("=")
    assert np.array_equal(back, array)


def test_outputs_of_diffusers_keep_their_class() -> None:
    back = there_and_back(Transformer2DModelOutput(sample=torch.ones(2)))
    assert type(back) is Transformer2DModelOutput
    assert torch.equal(back[0], torch.ones(2))


def test_a_copy_is_kept_and_copies_come_back() -> None:
    tensors: dict[str, torch.Tensor] = {}
    mine = torch.ones(2)
    node = pack(mine, "x", keep_in(tensors, None))
    mine.zero_()
    first = unpack(node, tensors, CPU)
    first.zero_()
    assert torch.equal(unpack(node, tensors, CPU), torch.ones(2))


def test_a_shape_comes_back_as_zeros() -> None:
    node = pack((torch.ones(2, 3, dtype=torch.bfloat16), None), "x", shape_only)
    zeros, none = unpack(json.loads(json.dumps(node)), {}, CPU)
    assert torch.equal(zeros, torch.zeros(2, 3, dtype=torch.bfloat16))
    assert none is None


@pytest.mark.parametrize(
    "value",
    [
        object(),
        lambda: None,
        {1.5: 0},
        {1, 2},
        np.array(["text"]),
        np.array([object()]),
        np.complex64(1),
        torch.zeros(2, dtype=torch.complex64),
        torch.zeros(2).to_sparse(),
        torch.Generator(),
        type("Listed", (list,), {})(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_would_not_come_back_is_refused_with_its_place(value: Any) -> None:
    with pytest.raises(UnknownType, match=r"^x\.deep\.0 is "):
        pack({"deep": [value]}, "x", keep_in({}))


@pytest.mark.parametrize("named", [["os", "system"], ["diffusers", "WanPipeline"], ["builtins", "dict"]])
def test_a_checkpoint_cannot_name_any_class(named: list[str]) -> None:
    with pytest.raises(UnknownType):
        unpack({"output": [*named, {}]}, {}, CPU)


def sample() -> bytes:
    tensors = {"a": torch.arange(200.0), "b": torch.ones(3, 5, dtype=torch.bfloat16)}
    return dump(Snapshot(tensors, {"steps": [1, 2]}, 7), {"must": {"model": "x"}, "é": None})


def test_everything_comes_back() -> None:
    snapshot = parse(sample())
    assert (snapshot.step, snapshot.meta) == (7, {"steps": [1, 2]})
    assert snapshot.extra == read_extra(sample()) == {"must": {"model": "x"}, "é": None}
    assert snapshot.size == 200 * 4 + 15 * 2
    assert torch.equal(snapshot.tensors["a"], torch.arange(200.0))
    assert safetensors.torch.load(sample()).keys() == {"a", "b"}


def test_every_cut_is_noticed() -> None:
    blob = sample()
    for length in (0, 1, 7, 8, 9, 100, len(blob) // 2, len(blob) - 1):
        with pytest.raises(CheckpointRefused, match=r"damaged or no checkpoint.*step 0"):
            parse(blob[:length])


def test_every_flipped_bit_is_noticed() -> None:
    blob = sample()
    for at in [*range(0, len(blob), 13), len(blob) - 1]:
        broken = bytearray(blob)
        broken[at] ^= 4
        with pytest.raises(CheckpointRefused):
            parse(bytes(broken))


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"\xff" * 64,
        b"not a checkpoint at all",
        (2).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
        safetensors.torch.save({"a": torch.ones(2)}),
        safetensors.torch.save({"a": torch.ones(2)}, metadata={"callsheet": "[]", "sha256": ""}),
        safetensors.torch.save({"a": torch.ones(2)}, metadata={"callsheet": "{}", "sha256": ""}),
    ],
    ids=range(8),
)
def test_what_is_no_checkpoint_is_refused(blob: bytes) -> None:
    for read in (parse, read_extra):
        with pytest.raises(CheckpointRefused, match="damaged or no checkpoint"):
            read(blob)


def test_another_format_is_refused_by_its_number() -> None:
    blob = safetensors.torch.save(
        {"a": torch.ones(2)}, metadata={"callsheet": json.dumps({"format": 2}), "sha256": ""}
    )
    with pytest.raises(UnknownFormat, match=r"format 2, known here is 1.*step 0"):
        parse(blob)
