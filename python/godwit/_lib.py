"""The C library, loaded when it is first needed. godwit.h describes its functions."""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Any

from . import errors

AGAIN = 1
BUSY, FORKED = -7, -10
SUM, FINITE = 1, 2
ONCE, LOOK = 1, 2
VALUES, STATE = 1, 2
SLICE_MS = 50  # of a wait: for so long an interrupt may go unnoticed

_ABI = 9
_ERRORS = {
    -1: errors.ArgumentError,
    -2: errors.RowError,
    -3: errors.LengthError,
    -4: errors.ClosedError,
    -5: errors.NodeLostError,
    -6: errors.OutOfMemoryError,
    BUSY: errors.BusyError,
    -8: errors.CancelledError,
    FORKED: errors.ForkError,
    -12: errors.FullError,
}

_i32, _i64, _u64, _size, _at = ctypes.c_int32, ctypes.c_int64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p
_FUNCTIONS = {
    "abi": (_i32, []),
    "error": (ctypes.c_char_p, []),
    "open": (_i64, [ctypes.c_char_p, _size]),
    "ready": (_i32, [_i64, _i32]),
    "close": (_i32, [_i64, _i32]),
    "abandon": (_i32, [_i64, ctypes.c_char_p, _size, _i32]),
    "worker": (_i64, [_i64, _i32]),
    "stats": (_i32, [_i64, _at, _size, _at]),
    "note": (_i32, [_i64, ctypes.c_char_p, _size]),
    "address": (_i32, [_i64, ctypes.c_char_p, _size, _at]),
    "pull": (_i32, [_i64, _i32, _at, _size, _at, _size, _i32, _i32, _at]),
    "lookup": (_i32, [_i64, _i32, _at, _size, _at, _at, _size, _at, _at, _size, _i32, _at]),
    "add": (_i32, [_at, _size, _at, _size, _size, _size, _i32, _at, _size]),
    "push": (_i32, [_i64, _i32, _at, _size, _at, _size, ctypes.c_float, ctypes.c_float, _i32, _i32, _at]),
    "set": (_i32, [_i64, _i32, _at, _size, _at, _size, _i32, _at]),
    "read": (_i32, [_i64, _i32, _at, _size, _at, _size, _i32, _i32, _at]),
    "write": (_i32, [_i64, _i32, _at, _size, _at, _size, _i32, _i32, _at]),
    "state": (_i32, [_i64, _i32]),
    "localize": (_i32, [_i64, _i32, _at, _size, _i32, _at]),
    "intent": (_i32, [_i64, _i32, _at, _size, _i64, _i64]),
    "advance": (_i64, [_i64]),
    "clock": (_i64, [_i64]),
    "bound_age": (_i32, [_i64, _i64]),
    "in_order": (_i64, [_i64]),
    "wait_sync": (_i32, [_i64, _i32, _at]),
    "sync_all": (_i32, [_i64, _i32, _at]),
    "barrier": (_i32, [_i64, _i32, _at]),
    "wait": (_i32, [_i64, _u64, _i32]),
    "cancel": (_i32, [_i64, _u64]),
    "prepare_sample": (_i64, [_i64, _i32, _i32, _i64, _i64]),
    "pull_sample": (_i32, [_i64, _i32, _i64, _at, _size, _at, _size, _i32, _at]),
    "finish_sample": (_i32, [_i64, _i64]),
    "save": (_i32, [_i64, ctypes.c_char_p, _size, ctypes.c_char_p, _size, _i32, _at]),
    "next": (_i64, [ctypes.c_char_p, _size]),
    "checkpoint": (_i64, [ctypes.c_char_p, _size]),
    "describe": (_i32, [_i64, _at, _size, _at]),
    "kept": (_i32, [_i64, _at, _size, _at]),
    "rows": (_i32, [_i64, _i32, _at, _size, _at, _size, _i32]),
    "forget": (_i32, [_i64]),
    "unique": (_i64, [_at, _size, _at, _at, _size]),
}


class Library:
    """The functions, without their prefix."""

    def __init__(self, path: str) -> None:
        self.pid = os.getpid()
        cdll = ctypes.CDLL(path)
        for name, (result, arguments) in _FUNCTIONS.items():
            f = getattr(cdll, "godwit_" + name)
            f.restype, f.argtypes = result, arguments
            setattr(self, name, f)
        if self.abi() != _ABI:
            raise ImportError(f"{path} has the ABI {self.abi()}, this package needs {_ABI}: build both from one source")

    def __getattr__(self, name: str) -> Any:  # for type checkers: the functions are set above
        raise AttributeError(name)

    def fail(self, code: int) -> None:
        """Raises the error of a code."""
        text = self.error().decode("utf-8", "replace")
        if code == FORKED:
            text = f"process {os.getpid()} was forked from process {self.pid}, which has a Godwit cluster, and cannot use it"
            text += ": read rows in the parent (a DataLoader's workers should only prepare batches), or start the process by spawn"
        raise _ERRORS.get(code, errors.GodwitError)(text)

    def own(self) -> None:
        """Raises ForkError in a forked child, before it changes what only stands for the cluster there."""
        if os.getpid() != self.pid:
            self.fail(FORKED)

    def check(self, code: int) -> int:
        """Returns a result, or raises the error that it is."""
        if code < 0:
            self.fail(code)
        return code


def text(library: Library, call: Any, id: int) -> bytes:
    """Returns what a function writes that takes a buffer and writes its length."""
    length, size = ctypes.c_size_t(), 1 << 14
    while True:
        buffer = ctypes.create_string_buffer(size)
        code = call(id, ctypes.addressof(buffer), size, ctypes.addressof(length))
        if code == -3 and length.value > size:
            size = length.value
            continue
        library.check(code)
        return buffer.raw[: length.value]


_library: Library | None = None
_lock = threading.Lock()


def load() -> Library:
    """Returns the library. The first call loads it, which starts Go's threads."""
    global _library
    if _library is None:
        with _lock:
            if _library is None:
                path = os.environ.get("GODWIT_LIBRARY") or os.path.join(os.path.dirname(__file__), "libgodwit.so")
                if not os.path.exists(path):
                    raise ImportError(f"there is no {path}: this copy of the package was not built for this system (make wheel builds one)")
                _library = Library(path)
    _library.own()
    return _library
