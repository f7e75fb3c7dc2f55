"""Rows of ids that are no row numbers."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from . import _buffers
from ._cluster import _whole


def rows_of(ids: Any, rows: int, *, salt: int = 0) -> Any:
    """Returns a row of 0 … rows-1 for each of some ids, which are integers (an array, a tensor or a list) or strings.

    The row follows from id, rows and salt alone, in every process and version. It is the hash of the id, times rows, over 2**64, rounded down; two
    ids may have the same. The hash of an integer is the output of SplitMix64 whose state is the id plus the salt (modulo 2**64), that of a string the first 8
    bytes, the highest first, of its BLAKE2b of 8 bytes in UTF-8 with the salt as its salt (8 bytes, the lowest first, then zeros). Tables of several hashes take several salts.

    >>> rows_of(["user-17", "user-18"], 1_000_000)
    array([529769, 409583])
    >>> rows_of([17, 18, 2**60], 1_000_000)
    array([502021,  66905, 565291])
    """
    rows, salt = _whole("rows", rows, 1, 2**48), _whole("salt", salt, 0, 2**64 - 1)
    tensor = _buffers.is_tensor(ids)
    a = ids.detach().cpu().numpy() if tensor else _array(ids)
    if a.dtype.kind in "iu":
        hashes = _mixed(a.astype(np.uint64), salt)
    elif a.dtype.kind in "UTO" or not a.size:
        hashes = _hashes(a.reshape(-1).tolist(), salt).reshape(a.shape)
    else:
        raise TypeError(f"ids are of type {a.dtype}, want integers or strings")
    found = _scaled(hashes, rows)
    if tensor:
        import torch

        return torch.from_numpy(found).to(ids.device)
    return found


def _array(ids: Any) -> Any:
    """Returns ids as an array: of a list with others than integers of 64 bits, they are objects. So each is as it was, and takes as much room as it needs."""
    first = ids
    while isinstance(first, (list, tuple)) and first:
        first = first[0]
    a = np.asarray(ids, dtype=object if isinstance(first, str) else None)
    return np.asarray(ids, dtype=object) if a.size and a.dtype.kind not in "iu" and isinstance(ids, (list, tuple)) else a


def _hashes(ids: list[Any], salt: int) -> Any:
    if ids and all(isinstance(x, (int, np.integer)) and not isinstance(x, bool) for x in ids):
        return _mixed(np.array([int(x) % 2**64 for x in ids], np.uint64), salt)
    return np.array([_hash(x, salt) for x in ids], np.uint64)


def _hash(x: Any, salt: int) -> int:
    if not isinstance(x, str):
        raise TypeError(f"an id is of type {type(x).__name__}, want integers or strings, of one kind")
    return int.from_bytes(hashlib.blake2b(x.encode(), digest_size=8, salt=salt.to_bytes(8, "little")).digest(), "big")


def _mixed(x: Any, salt: int) -> Any:
    """SplitMix64."""
    with np.errstate(over="ignore"):
        x = x + np.uint64((salt + 0x9E3779B97F4A7C15) % 2**64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def _scaled(hashes: Any, rows: int) -> Any:
    """Returns hashes·rows / 2**64, without the bits that 64 have no room for."""
    high, low, n = hashes >> np.uint64(32), hashes & np.uint64(2**32 - 1), rows
    n_high, n_low = np.uint64(n >> 32), np.uint64(n & (2**32 - 1))
    middle = high * n_low + ((low * n_low) >> np.uint64(32))
    middle_low = (middle & np.uint64(2**32 - 1)) + low * n_high
    return (high * n_high + (middle >> np.uint64(32)) + (middle_low >> np.uint64(32))).astype(np.int64)
