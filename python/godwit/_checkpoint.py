"""Checkpoints of clusters: what :meth:`Cluster.save` writes."""

from __future__ import annotations

import io
import json
import os
from typing import Any

from . import _buffers, _lib
from .errors import ArgumentError, RowError

PART = 1 << 16  # rows that are read at a time, so that interrupts are noticed


class SavedTable:
    """A table of a checkpoint: ``name``, ``rows``, ``dim``, ``rule``, and ``state``, the floats that its rule keeps of a row."""

    def __init__(self, id: int, index: int, name: str, rows: int, dim: int, state: int, rule: str) -> None:
        self._id, self._index = id, index
        self.name, self.rows, self.dim, self.state, self.rule = name, rows, dim, state, rule

    def __repr__(self) -> str:
        return f"SavedTable({self.name!r}, rows={self.rows}, dim={self.dim}, rule={self.rule!r})"


class Checkpoint:
    """A checkpoint that is read, without a cluster. :func:`load` opens one. A copy, and what is unpickled in another process that sees the folder, is the same one."""

    def __init__(self, place: str) -> None:
        self.place = place
        self._library = _lib.load()
        self._ids: list[int] = []
        self.number = 0
        self.tables: dict[str, SavedTable] = {}
        group = 0
        while group == 0 or has(group_place(place, group)[0], self.number):  # tables that were added later are not there
            self._open(group)
            group += 1

    def _open(self, group: int) -> None:
        folder, number = group_place(self.place, group)
        at = f"{folder}#{number or self.number}" if number or group else folder
        id = self._library.check(self._library.checkpoint(at.encode(), len(at.encode())))
        self._ids.append(id)
        found = json.loads(_lib.text(self._library, self._library.describe, id))
        self.number = found["number"]
        for i, t in enumerate(found["tables"]):
            self.tables[t["name"]] = SavedTable(id, i, **t)

    def pull(self, table: str, rows: Any = None, out: Any = None) -> Any:
        """Reads rows, of any shape, as a worker's pull does; of the whole table if none are given.

        The result is float32 and has the shape ``(*rows.shape, dim)``: a tensor if ``rows`` are one, else an array. Several threads may read at a time. It raises RowError (an
        IndexError) where a row is not in the table, and ArgumentError where no such table was saved.
        """
        return self._read(table, rows, _lib.VALUES, out)

    def state(self, table: str, rows: Any = None) -> Any:
        """Reads what the table's rule keeps of each row, as pull reads values: ``SavedTable.state`` floats a row."""
        return self._read(table, rows, _lib.STATE, None)

    def _read(self, table: str, rows: Any, parts: int, out: Any) -> Any:
        import numpy as np

        t = self.tables.get(table)
        if t is None:
            raise ArgumentError(f"there is no table {table!r} in {self.place}, which has {', '.join(self.tables)}")
        dim = t.dim if parts == _lib.VALUES else t.state
        rows = _buffers.rows(np.arange(t.rows) if rows is None else rows)
        if out is None:
            out = _buffers.like(rows, dim)
        elif tuple(_buffers.values(out, "the values of a pull", write=True).shape) != (*rows.shape, dim):
            raise ArgumentError(f"out has the shape {tuple(out.shape)}, want {(*rows.shape, dim)}")
        flat = rows.reshape(-1)
        at = _buffers.address(out)
        if len(flat) <= PART:
            self._part(t, flat, at, dim, parts)
            return out
        flat, to = np.asarray(flat), np.asarray(out.detach() if _buffers.is_tensor(out) else out).reshape(len(flat), dim)
        wrong = np.flatnonzero((flat < 0) | (flat >= t.rows))
        if len(wrong):
            raise RowError(f"row {flat[wrong[0]]} at position {wrong[0]}, table {t.name!r} of {self.place} has rows 0 … {t.rows - 1}")
        # In their order, as each part takes the blocks of the checkpoint between its first row and its last.
        order = None if (flat[1:] >= flat[:-1]).all() else np.argsort(flat, kind="stable")
        for begin in range(0, len(flat), PART):
            if order is None:
                self._part(t, flat[begin : begin + PART], at + 4 * begin * dim, dim, parts)
                continue
            some = order[begin : begin + PART]
            values = np.empty((len(some), dim), np.float32)
            self._part(t, flat[some], _buffers.address(values), dim, parts)
            to[some] = values
        return out

    def _part(self, t: SavedTable, rows: Any, at: int, dim: int, parts: int) -> None:
        """Reads some rows to an address."""
        n = len(rows)
        self._library.check(self._library.rows(t._id, t._index, _buffers.address(rows), n, at, n * dim, parts))

    def extra(self) -> Any:
        """Returns what was given to save as ``extra``; None: nothing. Only tensors, numbers, texts and containers of them are loaded."""
        kept = _lib.text(self._library, self._library.kept, self._ids[0])
        if not kept:
            return None
        return restored(kept)

    def __repr__(self) -> str:
        return f"Checkpoint({self.place!r}, number={self.number}, tables={list(self.tables.values())})"

    def __reduce__(self) -> Any:
        """A copy, also in a process that is spawned, opens the same checkpoint itself."""
        return load, (self._place(),)

    def _place(self) -> str:
        """The place of this checkpoint, with its number."""
        return f"{group_place(self.place, 0)[0]}#{self.number}"

    def __del__(self) -> None:
        try:
            for id in self._ids:
                self._library.forget(id)
        except Exception:  # at the interpreter's end, or after a fork
            pass


def restored(kept: bytes) -> Any:
    """Returns what was kept. It raises where that has other objects than tensors, numbers, texts and containers of them."""
    import torch

    return torch.load(io.BytesIO(kept), map_location="cpu", weights_only=True)


def group_place(place: str, group: int) -> tuple[str, int]:
    """Returns the folder of a group of tables, and the number in the place; 0: it has none."""
    folder, mark, number = place.rpartition("#")
    if not mark or not number.isdigit():
        folder, number = place, "0"
    return (f"{folder.rstrip('/')}/tables-{group}" if group else folder), int(number)


def absolute(folder: str) -> str:
    """Returns a folder by a path that does not depend on where the process is."""
    return folder if "://" in folder else os.path.abspath(folder)


def folders(folder: str, groups: int) -> list[str]:
    """Returns the folders of so many groups of tables in a folder, and of more if there are."""
    while os.path.isdir(group_place(folder, groups)[0]):
        groups += 1
    return [group_place(folder, i)[0] for i in range(groups)]


def has(folder: str, number: int) -> bool:
    """Reports whether a checkpoint of this number is in a folder."""
    return os.path.exists(os.path.join(folder, f"checkpoint-{number:010d}.jsonl"))


def load(place: Any) -> Checkpoint:
    """Opens a checkpoint for reading, without a cluster: the last one in a folder, or another by its number, as in ``"folder#12"``."""
    return Checkpoint(absolute(place_of(place)))


def place_of(place: Any) -> str:
    """Returns a place as text."""
    text = os.fspath(place)
    if not isinstance(text, str) or not text:
        raise ArgumentError(f"a place is {place!r}, want the path of a folder")
    return utf8("a place", text)


def utf8(what: str, text: str) -> str:
    """Returns a text, unless it has bytes that are no UTF-8, as Python writes those of file names: the library would replace them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ArgumentError(f"{what} is {text!r}, which is not UTF-8") from None
    return text
