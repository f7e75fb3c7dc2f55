"""Godwit for Python: tables of rows that live on a cluster, and PyTorch modules on top of them.

>>> import godwit, numpy as np
>>> with godwit.Cluster() as cluster:
...     t = cluster.table("counts", rows=1000, dim=2)
...     cluster.worker.push(t, [3, 3, 7], np.ones((3, 2), np.float32))
...     print(cluster.worker.pull(t, [3, 7]))
[[2. 2.]
 [1. 1.]]
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import errors
from .errors import GodwitError

if TYPE_CHECKING:
    from . import nn as nn, optim as optim
    from ._ahead import Lookahead as Lookahead, lookahead as lookahead
    from ._checkpoint import Checkpoint as Checkpoint, SavedTable as SavedTable, load as load
    from ._cluster import (
        Cluster as Cluster,
        Handle as Handle,
        Init as Init,
        Sample as Sample,
        Sampler as Sampler,
        Table as Table,
        Worker as Worker,
        cluster as cluster,
        init as init,
        normal as normal,
        uniform as uniform,
        zero as zero,
    )
    from ._dense import Dense as Dense, dense as dense
    from ._export import to_torch as to_torch
    from ._ids import rows_of as rows_of
    from ._launch import TLS as TLS
    from ._state import without_rows as without_rows
    from .nn import clip_grad_norm_ as clip_grad_norm_, parameters as parameters

__version__ = "0.1.0"

# What needs numpy or torch is imported when it is used: the package itself takes a few milliseconds.
_lazy = {
    **dict.fromkeys(("Cluster", "Handle", "Init", "Sample", "Sampler", "Table", "Worker", "cluster", "init", "normal", "uniform", "zero"), "._cluster"),
    "TLS": "._launch",
    **dict.fromkeys(("lookahead", "Lookahead"), "._ahead"),
    **dict.fromkeys(("Checkpoint", "SavedTable", "load"), "._checkpoint"),
    **dict.fromkeys(("Dense", "dense"), "._dense"),
    "to_torch": "._export",
    "rows_of": "._ids",
    "without_rows": "._state",
    **dict.fromkeys(("parameters", "clip_grad_norm_"), ".nn"),
}
_with_torch = ("._dense", "._export", ".nn")
__all__ = ["errors", "GodwitError", "nn", "optim", *_lazy]

if not TYPE_CHECKING:  # which knows the names from above, and tells of others

    def __getattr__(name: str) -> Any:
        if name in ("nn", "optim"):
            return importlib.import_module("." + name, __name__)
        if name in _lazy:
            value = getattr(importlib.import_module(_lazy[name], __name__), name)
            globals()[name] = value
            return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:  # what can be had, also what was not used yet
        from importlib.util import find_spec

        torch = find_spec("torch") is not None
        return sorted({*globals(), *(x for x in __all__ if torch or x not in ("nn", "optim") and _lazy.get(x) not in _with_torch)})
