"""What state_dicts hold of rows."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator

from ._cluster import Table
from .errors import ArgumentError

MAX_STATE = 1 << 30
"""Bytes of a table's values, and of what its rule keeps of them, that a state_dict may hold."""

PART = 1 << 16  # rows that are read or written at a time

_rows = True


def with_rows() -> bool:
    """Reports whether state_dicts hold rows."""
    return _rows


@contextlib.contextmanager
def without_rows() -> Iterator[None]:
    """Within it, state_dicts of modules and optimizers hold no rows, which :meth:`Cluster.save` saves, but all else.

    ``load_state_dict`` knows such a state and leaves the rows as they are. A plain dict with what is in the state of a module does not tell that it has
    no rows: load it within ``without_rows``, too.
    """
    global _rows
    before, _rows = _rows, False
    try:
        yield
    finally:
        _rows = before


def check_size(table: Table, floats: int, what: str) -> None:
    """Refuses what does not fit into a state_dict."""
    size = 4 * table.rows * floats
    if size > MAX_STATE:
        raise ArgumentError(
            f"table {table.name!r} has {size >> 20} MiB of {what}, and a state_dict holds at most {MAX_STATE >> 20}: "
            "save the rows by cluster.save(place), and the rest by state_dict() within godwit.without_rows()"
        )


def in_parts(rows: int, do: Callable[[Any, int, int], None]) -> None:
    """Calls do with the numbers of rows, some at a time, and where they begin and end."""
    import torch

    for begin in range(0, rows, PART):
        end = min(rows, begin + PART)
        do(torch.arange(begin, end, device="cpu"), begin, end)
