"""Values of schedulers and models as a JSON tree beside named tensors, and back, with every type kept.

A node is a dict with one key that names its kind::

    {"value": v}               None, bool, int, float, str
    {"list": [..]}, {"tuple": [..]}, {"dict": [[key, node], ..]}
    {"tensor": name, "cpu": bool}, {"zeros": [shape, dtype]}   a tensor, or only its shape
    {"array": node}, {"scalar": [dtype, v]}                    numpy
    {"dtype": name}            torch.dtype
    {"output": [module, class, {field: node}]}                 diffusers' outputs
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from diffusers.utils import BaseOutput

Node = dict[str, Any]
Leaf = Callable[[torch.Tensor, str], Node]

_PLAIN = (type(None), bool, int, float, str)


class UnknownType(TypeError):
    """A value of a type that cannot be written down and read back exactly."""


def pack(value: Any, name: str, leaf: Leaf) -> Node:
    """The tree of a value; ``leaf`` says what becomes of its tensors. Raises UnknownType with the place."""
    if isinstance(value, torch.Tensor):
        return leaf(value, name)
    if type(value) in _PLAIN:
        return {"value": value}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, np.ndarray | np.generic):
        return _pack_numpy(value, name, leaf)
    return _pack_container(value, name, leaf)


def _pack_numpy(value: Any, name: str, leaf: Leaf) -> Node:
    if value.dtype.kind not in "biuf":
        raise UnknownType(f"{name} is numpy {value.dtype}")
    if isinstance(value, np.generic):
        return {"scalar": [value.dtype.str, value.item()]}
    native = np.array(value, dtype=value.dtype.newbyteorder("="), order="C", copy=True)
    return {"array": leaf(torch.from_numpy(native), name)}


def _pack_container(value: Any, name: str, leaf: Leaf) -> Node:
    kind = type(value)
    if isinstance(value, BaseOutput) and kind.__module__.startswith("diffusers."):
        fields = {key: pack(item, f"{name}.{key}", leaf) for key, item in value.items()}
        return {"output": [kind.__module__, kind.__qualname__, fields]}
    if kind in (list, tuple):
        return {kind.__name__: [pack(item, f"{name}.{at}", leaf) for at, item in enumerate(value)]}
    if kind is dict and all(type(key) in (str, int) for key in value):
        return {"dict": [[key, pack(item, f"{name}.{key}", leaf)] for key, item in value.items()]}
    raise UnknownType(f"{name} is a {kind.__module__}.{kind.__qualname__}")


def keep_in(tensors: dict[str, torch.Tensor], device: str | None = "cpu") -> Leaf:
    """A leaf that puts a copy into ``tensors``, on ``device`` or (None) where the tensor is."""

    def leaf(tensor: torch.Tensor, name: str) -> Node:
        if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_complex():
            raise UnknownType(f"{name} is a tensor of {tensor.layout}, {tensor.dtype}")
        to = tensor.device if device is None else device
        tensors[name] = tensor.detach().to(to, copy=True, memory_format=torch.contiguous_format)
        return {"tensor": name, "cpu": tensor.device.type == "cpu"}

    return leaf


def shape_only(tensor: torch.Tensor, _name: str) -> Node:
    """A leaf that keeps shape and dtype."""
    return {"zeros": [list(tensor.shape), str(tensor.dtype).removeprefix("torch.")]}


def unpack(node: Node, tensors: Mapping[str, torch.Tensor], device: torch.device) -> Any:
    """A fresh value of a tree. Tensors that were not on the CPU come on ``device``."""
    kind = next(iter(node))
    body = node[kind]
    if kind == "tensor":
        return tensors[body].to("cpu" if node["cpu"] else device, copy=True)
    if kind in ("list", "tuple"):
        items = [unpack(item, tensors, device) for item in body]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {key: unpack(item, tensors, device) for key, item in body}
    return _OTHERS[kind](body, tensors, device)


def _output(body: Any, tensors: Mapping[str, torch.Tensor], device: torch.device) -> Any:
    module, name, fields = body
    found = getattr(importlib.import_module(module), name) if module.startswith("diffusers.") else None
    if not (isinstance(found, type) and issubclass(found, BaseOutput)):
        raise UnknownType(f"{module}.{name} is no output of diffusers")
    return found(**{key: unpack(item, tensors, device) for key, item in fields.items()})


_OTHERS: dict[str, Callable[[Any, Mapping[str, torch.Tensor], torch.device], Any]] = {
    "value": lambda body, _tensors, _device: body,
    "dtype": lambda body, _tensors, _device: getattr(torch, body),
    "scalar": lambda body, _tensors, _device: np.dtype(body[0]).type(body[1]),
    "array": lambda body, tensors, device: unpack(body, tensors, device).numpy(),
    "zeros": lambda body, _tensors, device: torch.zeros(
        body[0], dtype=getattr(torch, body[1]), device=device
    ),
    "output": _output,
}
