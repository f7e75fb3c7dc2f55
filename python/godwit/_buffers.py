"""Rows and values as memory for the C library: without a copy where that is possible."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

_INT64, _FLOAT32 = np.dtype(np.int64), np.dtype(np.float32)


def is_tensor(x: Any) -> bool:
    """Reports whether x is a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def address(x: Any) -> int:
    """Returns where a contiguous array or tensor begins."""
    if isinstance(x, np.ndarray):
        return int(x.__array_interface__["data"][0])
    return int(x.data_ptr())


def rows(x: Any) -> Any:
    """Returns rows as a contiguous array or tensor of int64. It is x itself if x is one."""
    if type(x) is np.ndarray and x.dtype == _INT64 and x.flags.c_contiguous:
        return x
    if is_tensor(x):
        return _tensor_rows(x)
    a = np.asarray(x)
    if a.size == 0 and not isinstance(x, np.ndarray):
        a = a.astype(np.int64)
    if a.dtype.kind in "fO":
        a = _whole_numbers(x, a)
    if a.dtype == object and a.ndim == 0 and not isinstance(x, np.ndarray):  # of anything that numpy cannot look into
        raise TypeError(f"rows are of type {type(x).__name__}, want an array, a tensor or a list of integers")
    if a.dtype.kind not in "iu":
        raise TypeError(f"rows are of type {a.dtype}, want integers")
    if a.dtype == np.uint64 and a.size and int(a.max()) > 2**63 - 1:
        raise IndexError(f"row {int(a.max())} is above {2**63 - 1}")
    return np.ascontiguousarray(a, dtype=np.int64).reshape(a.shape)


def _whole_numbers(x: Any, a: Any) -> Any:
    """Returns x as an array of int64 where all of it is integers, of which numpy makes objects or floats if no type has them all; else a, which it made."""
    if isinstance(x, np.ndarray) and a.dtype != object or not a.size:
        return a
    objects = np.asarray(x, dtype=object)
    if not all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in objects.flat):
        return a
    for n in (max(objects.flat), min(objects.flat)):
        if not -(2**63) <= n < 2**63:
            raise IndexError(f"row {n} is {'above' if n > 0 else 'below'} {2**63 - 1 if n > 0 else 0}")
    return objects.astype(np.int64)


def _tensor_rows(x: Any) -> Any:
    import torch

    if type(x) is torch.Tensor and x.dtype is torch.int64 and x.is_cpu and x.layout is torch.strided and x.is_contiguous():
        return x
    if x.layout != torch.strided or x.is_meta:
        raise TypeError(f"rows are a tensor of layout {x.layout} on device {x.device}, want a dense one with values")
    if x.dtype.is_floating_point or x.dtype.is_complex or x.dtype == torch.bool:
        raise TypeError(f"rows are of type {x.dtype}, want integers")
    if x.dtype == torch.uint64:
        return torch.from_numpy(rows(x.detach().cpu().numpy()))  # which tells of those that int64 has not
    return x.detach().to(device="cpu", dtype=torch.int64).contiguous()


def values(x: Any, what: str, write: bool = False) -> Any:
    """Returns x if it is a contiguous float32 array or tensor of this machine's memory, else raises."""
    if isinstance(x, np.ndarray):
        if x.dtype != _FLOAT32:
            raise TypeError(f"{what} are of type {x.dtype}, want float32: convert them by .astype(np.float32)")
        if not x.flags.c_contiguous:
            raise ValueError(f"{what} have strides {x.strides}, want a contiguous array: np.ascontiguousarray makes one")
        if write and not x.flags.writeable:
            raise ValueError(f"{what} are read-only")
        return x
    if is_tensor(x):
        return _tensor_values(x, what, write)
    if write:
        raise TypeError(f"{what} are of type {type(x).__name__}, want a float32 array or tensor")
    return np.ascontiguousarray(x, dtype=np.float32)


def _tensor_values(x: Any, what: str, write: bool) -> Any:
    import torch

    if x.layout != torch.strided or x.device.type != "cpu":
        raise TypeError(f"{what} are a tensor of layout {x.layout} on device {x.device}, want a dense one on the CPU: .cpu() makes one")
    if x.dtype != torch.float32:
        raise TypeError(f"{what} are of type {x.dtype}, want float32: .float() converts them")
    if x.is_neg():
        raise ValueError(f"{what} are a negated view, whose memory has the opposite: .resolve_neg() makes a tensor of its own")
    if not x.is_contiguous():
        raise ValueError(f"{what} have strides {x.stride()}, want a contiguous tensor: .contiguous() makes one")
    if write and x.requires_grad and torch.is_grad_enabled():
        raise ValueError(f"{what} are a tensor that requires a gradient, which a pull does not give: use godwit.nn")
    return x.detach()


def size(x: Any) -> int:
    """Returns the number of elements."""
    return x.size if isinstance(x, np.ndarray) else x.numel()


def like(rows: Any, dim: int) -> Any:
    """Returns room for the values of rows: an array of an array, a tensor of a tensor."""
    if isinstance(rows, np.ndarray):
        return np.empty((*rows.shape, dim), np.float32)
    import torch

    return torch.empty((*rows.shape, dim), dtype=torch.float32, device="cpu")  # whatever torch.set_default_device says


def add(library: Any, where: Any, count: int, grad: Any) -> Any:
    """Returns the sums of the gradients of equal rows: a matrix of count rows, which a gradient of the shape (*where.shape, dim) has at its places."""
    import torch

    dim, repeat = grad.shape[-1], 1
    sums = torch.empty((count, dim), dtype=torch.float32, device="cpu")
    if not count:
        return sums
    stride = dim
    if not grad.is_contiguous():
        strides = grad.stride()
        if not any(strides[:-1]):  # all places have one vector
            grad, stride = grad.as_strided((dim,), strides[-1:]).contiguous(), 0
        elif strides == (dim, 0, 1):  # all of a bag have: the gradient of a sum or mean over them
            repeat = grad.shape[1]
        else:
            grad = grad.contiguous()
    # Of what is expanded there are fewer floats in memory than elements.
    floats = grad.numel() // repeat
    library.check(library.add(where.data_ptr(), where.numel(), grad.data_ptr(), floats, repeat, stride, dim, sums.data_ptr(), sums.numel()))
    return sums


def places(x: Any) -> tuple[Any, Any]:
    """Returns room for the distinct rows among some, and for the position there of each: arrays of an array, tensors of a tensor."""
    if isinstance(x, np.ndarray):
        return np.empty(x.size, np.int64), np.empty(x.shape, np.int64)
    import torch

    return torch.empty(x.numel(), dtype=torch.int64, device="cpu"), torch.empty(x.shape, dtype=torch.int64, device="cpu")


def unique(library: Any, x: Any) -> tuple[Any, Any]:
    """Returns the distinct rows in order of occurrence, and the position there of each row of x."""
    u, inverse = places(x)
    n = size(x)
    k = library.check(library.unique(address(x), n, address(u), address(inverse), n))
    return u[:k], inverse
