"""Clusters, tables and workers: raw access to rows, by numpy arrays or torch tensors."""

from __future__ import annotations

import atexit
import ctypes
import itertools
import json
import math
import operator
import os
import re
import sys
import threading
import weakref
from typing import Any, Callable, Sequence, cast

from . import _buffers, _checkpoint, _launch, _lib
from ._launch import TLS
from .errors import ArgumentError, BusyError, ClosedError, NodeLostError

_MOST = 3.4028234663852886e38  # finite, as float32
_LEVELS, _DISTRIBUTIONS = ("iid", "bounded", "long-term", "best-effort"), ("uniform", "log_uniform")
_DROP_MS = 10_000  # for the end of nodes that were not closed
LATER = 4  # pushes of a table that may be under way where accesses take effect in their order


class Init:
    """How a table makes the first values of its rows: :func:`zero`, :func:`uniform` or :func:`normal`."""

    def __init__(self, kind: str, a: float = 0.0, b: float = 0.0) -> None:
        self.kind, self.a, self.b = kind, float(a), float(b)
        if not abs(self.a) <= _MOST or not abs(self.b) <= _MOST or kind == "uniform" and self.a > self.b or kind == "normal" and self.b < 0:
            raise ArgumentError(f"{self}, want finite numbers of float32: uniform(low, high) with low ≤ high, normal(mean, std) with std ≥ 0")

    def __repr__(self) -> str:
        return f"{self.kind}()" if self.kind == "zero" else f"{self.kind}({self.a}, {self.b})"


def zero() -> Init:
    """Rows begin as zeros."""
    return Init("zero")


def uniform(low: float, high: float) -> Init:
    """Rows begin as draws from the uniform distribution [low, high)."""
    return Init("uniform", low, high)


def normal(mean: float = 0.0, std: float = 1.0) -> Init:
    """Rows begin as draws from a normal distribution."""
    return Init("normal", mean, std)


class Table:
    """A table of a cluster: ``rows`` rows of ``dim`` floats. :meth:`Cluster.table` makes one."""

    def __init__(self, cluster: Cluster, name: str, rows: int, dim: int, rule: str, init: Init) -> None:
        self.cluster, self.name, self.rows, self.dim, self.rule, self.init = cluster, name, rows, dim, rule, init
        self._begun: _Group | None = None  # it is in, once that has begun
        self._group: _Group | None = None  # … and what is to be done to its rows at first has been
        self._index = 0  # in it
        self._samplers: list[Sampler] = []
        self._prepare: list[Callable[[Worker], None]] = []  # what is done to its rows when they exist
        self._wrong: ArgumentError | None = None  # why it cannot begin
        self._synced: Callable[[], None] = lambda: None  # reads a copy of its rows anew, when they are the same at all ranks

    @property
    def started(self) -> bool:
        """Whether the rows exist: from the first access on, the table does not change any more."""
        return self._begun is not None

    def begin(self, rule: str | None = None, prepare: Callable[[Worker], None] | None = None) -> None:
        """Says, before the first access, what the rule is, or what is to be done to the rows at first."""
        self.cluster._library.own()
        if self.cluster.closed:
            raise ClosedError(f"table {self.name!r}: the cluster is closed")
        if self.started:
            raise ArgumentError(f"table {self.name!r} was accessed already with the rule {self.rule}: make its optimizer before the first forward")
        if rule is not None:
            self.rule = rule
        if prepare is not None:
            self._prepare.append(prepare)

    def _open(self) -> _Group:
        if self._wrong is not None:
            raise ArgumentError(f"table {self.name!r} did not begin: {self._wrong}; add it anew") from self._wrong
        if self._group is None:
            self.cluster.start()
        group = self._group or self._begun  # of who prepares its rows
        if group is None:
            raise ClosedError(f"table {self.name!r}: the cluster is closed")
        return group

    def __repr__(self) -> str:
        return f"Table({self.name!r}, rows={self.rows}, dim={self.dim}, rule={self.rule!r})"

    def __reduce__(self) -> Any:
        raise TypeError(f"table {self.name!r} cannot be pickled or copied: its rows are in the cluster of this process")


class Sampler:
    """Draws rows of a table at random: :meth:`Cluster.sampler` makes one."""

    def __init__(self, table: Table, spec: dict[str, Any]) -> None:
        self.table, self._spec = table, spec
        self._index = 0  # in its group, once that has begun

    def __repr__(self) -> str:
        return f"Sampler of {self.table!r}"


class Sample:
    """Rows that will be drawn: :meth:`Worker.prepare_sample` makes one."""

    def __init__(self, sampler: Sampler, id: int) -> None:
        self.sampler, self._id = sampler, id

    def __repr__(self) -> str:
        return f"Sample of {self.sampler.table!r}"


class _Group:
    """Tables that began together: a cluster of the library."""

    def __init__(self, library: _lib.Library, config: dict[str, Any], tables: list[Table], bases: list[int], launch: _launch.Launch | None, trace: str = "", complete: Callable[[], None] = lambda: None) -> None:
        """All ranks have to begin them. complete is called now and then meanwhile: it raises if another rank was lost or has closed its cluster."""
        self.library = library
        self._mine = False  # all nodes of the run are in this process, and are there
        complete()
        if launch is not None:
            number = launch.number()
            config = {**config, "nodes": launch.world, "member": launch.member(number, complete)}
        if trace:
            run = config["member"]["run"] if launch is not None else f"{os.getpid()}-{next(_traced)}"
            config = {**config, "trace": os.path.join(trace, run), "program": os.path.basename(sys.argv[0])}
        self.bases = bases  # the workers' clocks when it began
        spec = [
            {"name": t.name, "rows": t.rows, "dim": t.dim, "rule": t.rule, "init": {"kind": t.init.kind, "a": t.init.a, "b": t.init.b}}
            for t in tables
        ]
        drawn = [(i, s) for i, t in enumerate(tables) for s in t._samplers]
        for n, (_, s) in enumerate(drawn):
            s._index = n
        text = json.dumps({**config, "tables": spec, "samplers": [{**s._spec, "name": str(n), "table": i} for n, (i, s) in enumerate(drawn)]}).encode()
        self.id = library.check(library.open(text, len(text)))
        try:
            if launch is not None and config["member"]["serve"]:
                launch.tell(number, _launch.address(library.address, library.check, self.id), config["member"]["token"])
            while library.check(library.ready(self.id, _lib.SLICE_MS)) == _lib.AGAIN:
                complete()
        except BaseException as e:
            library.close(self.id, 0)
            if launch is not None and not isinstance(e, Exception):  # an interrupt of this rank alone: the others form a group of this number
                _launch.Launch.formed = number
            raise
        self._mine = launch is None
        self.workers = [library.check(library.worker(self.id, i)) for i in range(len(bases))]

    def __del__(self) -> None:
        """Ends nodes that nobody can reach any more, and nobody has closed. Other processes of a run would take it for the end of this one."""
        if self._mine:
            try:
                self.library.close(self.id, _DROP_MS)
            except Exception:  # at the interpreter's end
                pass

    def stats(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(_lib.text(self.library, self.library.stats, self.id))
        return found

    def close(self, ms: int) -> bool:
        """Ends it, and returns whether it has ended after a while."""
        return self.library.check(self.library.close(self.id, ms)) == 0

    def abandon(self, reason: str, ms: int) -> bool:
        """Is close without a wait for other ranks."""
        text = reason.encode()
        return self.library.check(self.library.abandon(self.id, text, len(text), ms)) == 0


class Handle:
    """An operation that is under way. Wait for it once."""

    __slots__ = ("_worker", "_id", "_cell", "_keep", "_result", "_said", "table", "in_order")

    def __init__(self, worker: Worker, id: int, keep: tuple[Any, ...], result: Any) -> None:
        """It is made before the library is called, which writes the operation's number to the cell. So an interrupt finds it wherever it comes."""
        self._worker, self._id, self._keep, self._result = worker, id, keep, result
        self._cell = ctypes.c_uint64()  # 0: nothing is under way
        self._said: list[int] = []  # by the library, when it was waited for
        self.table: Table | None = None  # of a push that is waited for later
        self.in_order = False  # what the worker does after it sees it

    @property
    def done(self) -> bool:
        """Whether it was waited for with success, or had ended when the call returned."""
        return not self._cell.value

    def wait(self, timeout: float | None = None) -> Any:
        """Waits, and returns the values of a pull. After ``timeout`` seconds it raises TimeoutError, and the operation goes on.

        So it does after a BusyError, which comes while another thread uses the worker.
        """
        op = self._cell.value
        if not op:
            return self._result
        library, left, said = self._worker._library, timeout, self._said
        while not said or said[0] == _lib.AGAIN:
            ms = _lib.SLICE_MS if left is None else max(0, int(min(left * 1000, _lib.SLICE_MS)))
            # The library says it once, and an interrupt comes as soon as a call has returned: no instruction is between the two.
            said[:] = map(library.wait, (self._id,), (op,), (ms,))
            if said[0] == _lib.AGAIN and left is not None:
                left -= ms / 1000
                if left <= 0 or ms == 0:
                    raise TimeoutError(f"the operation has not ended after {timeout} s")
        if said[0] == _lib.BUSY:  # it goes on, and uses its buffers
            said.clear()
            library.fail(_lib.BUSY)
        self._over()
        library.check(said[0])
        return self._result

    def cancel(self) -> None:
        """Gives the operation up. Its buffers are free then; a push may have taken effect for some rows.

        It raises BusyError, and gives nothing up, while another thread uses the worker.
        """
        op = self._cell.value
        if op:
            library = self._worker._library
            if library.cancel(self._id, op) == _lib.BUSY:
                library.fail(_lib.BUSY)
            self._over()  # only now: a second interrupt leaves it to be given up again

    def _give_up(self) -> None:
        """Cancels what may be under way. What cannot be cancelled now keeps its buffers, and the worker's next access waits for it."""
        try:
            self.cancel()
        except BusyError:
            self._worker._later.append(self)

    def __repr__(self) -> str:
        return f"Handle({'done' if self.done else 'under way'}, {self._worker!r})"

    def _hold(self) -> None:
        """Has the worker hold the buffers of an operation that is under way: an interrupt may come before __del__ has begun to give it up, and the library goes on."""
        if self._cell.value:
            self._worker._held[self._id, self._cell.value] = self._keep

    def _over(self) -> None:
        self._worker._held.pop((self._id, self._cell.value), None)
        self._cell.value, self._keep = 0, ()

    def __del__(self) -> None:
        try:
            if self._cell.value:
                self._give_up()
        except Exception:  # at the interpreter's end, or an interrupt came before it was made
            pass
        except BaseException:  # an interrupt
            self._worker._later.append(self)
            raise


class Worker:
    """A thread's access to the rows. It serves one thread at a time, and raises BusyError in another: start the cluster with one for each. Modules use the first.

    Rows are integers of any type and shape; contiguous int64 arrays, and tensors of the CPU, are used without a copy. Their values have the shape ``(*rows.shape, table.dim)``
    and are contiguous float32 memory. Where a row is not in the table, calls raise RowError (an IndexError), for a wrong shape ArgumentError (a ValueError), and for a
    wrong type TypeError; nothing has happened then. They raise NodeLostError where another rank was lost, and ClosedError when the cluster is closed.
    """

    def __init__(self, cluster: Cluster, index: int) -> None:
        self.cluster, self.index = cluster, index
        self._library = cluster._library
        self._clock = 0
        self._later: list[Handle] = []  # pushes that are waited for later
        self._held: dict[tuple[int, int], tuple[Any, ...]] = {}  # buffers of operations that are under way
        self._advanced = 0  # groups in which the step has been counted that is not in all yet

    def _of(self, table: Table) -> tuple[_Group, int]:
        group = _table(table)._group or table._open()
        if table.cluster is not self.cluster:
            raise ArgumentError(f"table {table.name!r} is of another cluster than the worker")
        return group, group.workers[self.index]

    def pull(self, table: Table, rows: Any, out: Any = None, *, once: bool = False) -> Any:
        """Reads rows, of any shape, and returns their values, of one dimension more: in ``out`` if it is given, else in a tensor if ``rows`` are one, else in an array.

        ``once`` reads a row that occurs several times once, which is faster if many do.
        """
        return self._do(*self._pull(table, rows, out, _lib.ONCE if once else 0))

    def pull_async(self, table: Table, rows: Any, out: Any = None, *, once: bool = False) -> Handle:
        """Begins a pull. Leave ``rows`` and ``out`` alone until it was waited for."""
        return self._begin(*self._pull(table, rows, out, _lib.ONCE if once else 0))

    def _look(self, table: Table, rows: Any, once: bool = False) -> Any:
        """Is a pull that makes no rows: those that nobody has accessed are read as they are at first."""
        self._settle()  # the home of a row that is pushed to is to know of it
        return self._do(*self._pull(table, rows, None, _lib.LOOK | _lib.ONCE * once))

    def _pull(self, table: Table, rows: Any, out: Any, flags: int) -> tuple[Any, ...]:
        """Returns what _do or _begin makes a pull of."""
        _, id = self._of(table)
        if self._later:
            self._see()
        rows = _buffers.rows(rows)
        if out is None:
            out = _buffers.like(rows, table.dim)
        else:
            _buffers.values(out, "the values of a pull", write=True)
            if out.shape != (*rows.shape, table.dim):
                raise ArgumentError(f"out has the shape {tuple(out.shape)}, want {(*rows.shape, table.dim)}: that of rows, and {table.dim} floats a row")
        return self._library.pull, id, (rows, out), out, table._index, _buffers.address(rows), _buffers.size(rows), _buffers.address(out), _buffers.size(out), flags

    def _lookup(self, table: Table, rows: Any) -> tuple[Any, Any, Any]:
        """Reads rows, each once. Returns their values, the distinct rows in the order in which they occur, and the position there of each. All are tensors."""
        _, id = self._of(table)
        if self._later:
            self._see()
        distinct, where = _buffers.places(rows)
        out, n = _buffers.like(rows, table.dim), rows.numel()
        found = ctypes.c_int64()
        self._do(
            self._library.lookup, id, (rows, distinct, where, out, found), out,
            table._index, rows.data_ptr(), n, distinct.data_ptr(), where.data_ptr(), n, ctypes.addressof(found), out.data_ptr(), n * table.dim,
        )
        return out, distinct[: found.value], where

    def _use(self, call: Callable[..., int], *arguments: Any) -> int:
        """Makes a call of the library, and returns its result. Where a push that is waited for later has the worker, as it waits for room, that is waited for now."""
        code = call(*arguments)
        if code == _lib.BUSY and self._later:
            self._settle()
            code = call(*arguments)
        return self._library.check(code)

    def _do(self, call: Callable[..., int], id: int, keep: tuple[Any, ...], result: Any, *arguments: Any) -> Any:
        """Makes a call of the library, waits for the operation that it may leave, and returns the result.

        What ends it early, such as an interrupt, gives the operation up: until then the library uses the buffers, which are kept.
        """
        handle = Handle(self, id, keep, result)
        try:
            code = self._use(call, id, *arguments, _lib.SLICE_MS, ctypes.addressof(handle._cell))
            if code == 0:
                return result
            handle._hold()
            return handle.wait()
        except BaseException:
            handle._give_up()
            raise

    def _begin(self, call: Callable[..., int], id: int, keep: tuple[Any, ...], result: Any, *arguments: Any) -> Handle:
        """Makes a call of the library, and returns what stands for the operation that it may leave."""
        handle = Handle(self, id, keep, result)
        try:
            self._use(call, id, *arguments, 0, ctypes.addressof(handle._cell))
            handle._hold()
            return handle
        except BaseException:
            handle._give_up()
            raise

    def push(self, table: Table, rows: Any, values: Any, *, rate: float = 0.0, sum: bool = False, finite: bool = False) -> None:
        """Hands each row's vector, of ``values`` of the shape ``(*rows.shape, table.dim)``, to the table's rule.

        ``rate`` is the learning rate, for the rules that take one with each push (``ratedsgd``, …). ``sum`` pushes the sum of the
        vectors of equal rows once; without it a row that occurs twice is pushed twice. ``finite`` leaves out what is not finite.
        """
        self._settle()
        self._do(*self._push(table, rows, values, rate, 1.0, sum, finite))

    def push_async(self, table: Table, rows: Any, values: Any, *, rate: float = 0.0, sum: bool = False, finite: bool = False) -> Handle:
        """Begins a push. Leave ``rows`` and ``values`` alone until it was waited for."""
        self._settle()
        return self._begin(*self._push(table, rows, values, rate, 1.0, sum, finite))

    def _push_later(self, table: Table, rows: Any, values: Any, rate: float, scale: float, sum: bool) -> None:
        """Pushes what is finite, multiplied by a scale, and the sums of equal rows if they may be. The worker's next access sees it.

        So an optimizer's step waits for no message, and pushes to several tables are under way at a time. The next access waits for them, unless accesses
        take effect in their order: then a push is waited for when its table has LATER newer ones.
        """
        in_order = not self.cluster._alone and self._in_order(self._of(table)[1])
        if self._later and not in_order and any(h.table is table for h in self._later):
            self._settle()
        handle = self._begin(*self._push(table, rows, values, rate, scale, sum, True))
        if not handle.done:
            handle.table, handle.in_order = table, in_order
            self._later.append(handle)
            while len([h for h in self._later if h.table is table]) > LATER:
                self._settle(len(self._later) - 1)

    def _in_order(self, id: int) -> bool:
        return self._use(self._library.in_order, id) == 1

    def _settle(self, but: int = 0) -> None:
        """Waits for what was pushed to be waited for later, but for so many of the last pushes."""
        while len(self._later) > but:
            try:
                self._later[0].wait()
            finally:
                if self._later[0].done:
                    self._later.pop(0)

    def _see(self) -> None:
        """Waits for what was pushed before, unless what follows sees it all the same."""
        if not all(h.in_order and self._in_order(h._id) for h in self._later):
            self._settle()

    def _push(self, table: Table, rows: Any, values: Any, rate: float, scale: float, sum: bool, finite: bool) -> tuple[Any, ...]:
        """Returns what _do or _begin makes a push of."""
        _, id = self._of(table)
        rows, values = self._both(table, rows, values, "pushed vectors")
        self.cluster._saved = None
        flags = (_lib.SUM if sum else 0) | (_lib.FINITE if finite else 0)
        return (
            self._library.push, id, (rows, values), None,
            table._index, _buffers.address(rows), _buffers.size(rows), _buffers.address(values), _buffers.size(values), float(rate), scale, flags,
        )

    def set(self, table: Table, rows: Any, values: Any, *, keep_state: bool = False) -> None:
        """Overwrites rows with ``values`` of the shape ``(*rows.shape, table.dim)``, and resets the state of their rule unless it is to be kept."""
        self.cluster._saved = None
        self._settle()
        if keep_state:
            self._parts(self._library.write, table, *self._both(table, rows, values, "values to set"), _lib.VALUES)
            return
        _, id = self._of(table)
        rows, values = self._both(table, rows, values, "values to set")
        at, n = _buffers.address(values), _buffers.size(values)
        self._do(self._library.set, id, (rows, values), None, table._index, _buffers.address(rows), _buffers.size(rows), at, n)

    def state(self, table: Table, rows: Any) -> Any:
        """Reads what the table's rule keeps of each row beside its values, such as the accumulators of Adagrad: as many floats a row as the rule has, which may be 0."""
        rows = _buffers.rows(rows)
        out = _buffers.like(rows, self._state_len(table))
        self._parts(self._library.read, table, rows, out, _lib.STATE)
        return out

    def set_state(self, table: Table, rows: Any, state: Any) -> None:
        """Overwrites what the table's rule keeps of each row, of the shape that :meth:`state` has, and leaves the values alone."""
        rows, state = _buffers.rows(rows), _buffers.values(state, "states to set")
        self.cluster._saved = None
        want = (*rows.shape, self._state_len(table))
        if tuple(state.shape) != want:
            raise ArgumentError(f"states to set have the shape {tuple(state.shape)}, want {want}: the rule {table.rule} keeps {want[-1]} floats a row")
        self._parts(self._library.write, table, rows, state, _lib.STATE)

    def _state_len(self, table: Table) -> int:
        _, id = self._of(table)
        return self._library.check(self._library.state(id, table._index))

    def _parts(self, call: Callable[..., int], table: Table, rows: Any, floats: Any, parts: int) -> None:
        _, id = self._of(table)
        self._settle()
        at, n = _buffers.address(floats), _buffers.size(floats)
        self._do(call, id, (rows, floats), None, table._index, _buffers.address(rows), _buffers.size(rows), at, n, parts)

    def _both(self, table: Table, rows: Any, values: Any, what: str) -> tuple[Any, Any]:
        rows, values = _buffers.rows(rows), _buffers.values(values, what)
        if tuple(values.shape) != (*rows.shape, table.dim):
            raise ArgumentError(f"{what} have the shape {tuple(values.shape)}, want {(*rows.shape, table.dim)}: that of rows, and {table.dim} floats a row")
        return rows, values

    def localize(self, table: Table, rows: Any) -> None:
        """Asks that rows move to this node, and returns when they are here or their owner declined."""
        _, id = self._of(table)
        self._settle()
        rows = _buffers.rows(rows)
        self._do(self._library.localize, id, (rows,), None, table._index, _buffers.address(rows), _buffers.size(rows))

    def intent(self, table: Table, rows: Any, start: int | None = None, end: int | None = None) -> None:
        """Announces that the worker will access rows while its clock is in start … end-1: in the next step if neither is given."""
        group, id = self._of(table)
        rows = _buffers.rows(rows)
        start, end = self._clocks(group, start, end)
        self._use(self._library.intent, id, table._index, _buffers.address(rows), _buffers.size(rows), start, end)

    def prepare_sample(self, sampler: Sampler, n: int, start: int | None = None, end: int | None = None) -> Sample:
        """Announces that the worker will take n rows of a sampler while its clock is in start … end-1: in the next step if neither is given.

        The system draws, or brings, rows that are here by then. The earlier it knows, the fewer messages a sample costs.
        """
        if not isinstance(sampler, Sampler):
            raise TypeError(f"a sampler is of type {type(sampler).__name__}, want what cluster.sampler returned")
        group, id = self._of(sampler.table)
        start, end = self._clocks(group, start, end)
        return Sample(sampler, self._use(self._library.prepare_sample, id, sampler._index, _whole("prepare_sample: n", n, 0, 2**31 - 1), start, end))

    def pull_sample(self, sample: Sample, n: int) -> tuple[Any, Any]:
        """Draws the next n rows of a sample, and returns them, an int64 array of n, and their values, a float32 array of n times the table's dim.

        It raises ArgumentError if fewer are left.
        """
        import numpy as np

        table = _sampled(sample).sampler.table
        _, id = self._of(table)
        self._settle()
        rows = np.empty(_whole("pull_sample: n", n, 0, 2**31 - 1), np.int64)
        values = _buffers.like(rows, table.dim)
        at, floats = _buffers.address(values), _buffers.size(values)
        self._do(self._library.pull_sample, id, (rows, values), None, sample.sampler._index, sample._id, _buffers.address(rows), _buffers.size(rows), at, floats)
        return rows, values

    def finish_sample(self, sample: Sample) -> None:
        """Discards the rest of a sample."""
        _, id = self._of(_sampled(sample).sampler.table)
        self._use(self._library.finish_sample, id, sample._id)

    def _clocks(self, group: _Group, start: int | None, end: int | None) -> tuple[int, int]:
        """Returns the clocks of a group's worker for those that were given."""
        start = self._clock + 1 if start is None else operator.index(start)
        end = start + 1 if end is None else operator.index(end)
        if not -(2**62) < start < 2**62 or not -(2**62) < end < 2**62:
            raise ArgumentError(f"an announcement from clock {start} to {end}: clocks are numbers of 62 bits")
        base = group.bases[self.index]
        return start - base, end - base

    def advance(self) -> int:
        """Raises the worker's clock by one and returns it: a step is done."""
        groups = self.cluster._groups
        while self._advanced < len(groups):  # after an error: those that are left
            self._use(self._library.advance, groups[self._advanced].workers[self.index])
            self._advanced += 1
        self._advanced = 0
        self._clock += 1
        return self._clock

    def bound_age(self, steps: int) -> None:
        """Bounds for how many of its steps the worker goes on while nothing comes from other nodes, in the tables that are there.

        Then a pull waits until all other nodes have received what this one had sent so many steps before, and have sent what they had. With
        plain gradient descent, ranks that train a good part of a small epoch without each other go too far together: an eighth of
        a rank's steps of an epoch is a good bound, and costs nothing where an epoch takes long. 0, with which workers begin, is none.
        """
        steps = operator.index(steps)
        if not 0 <= steps < 2**62:
            raise ArgumentError(f"bound_age({steps}): want 0 (none) or more steps")
        self.cluster.start()
        for group in self.cluster._groups:
            self._use(self._library.bound_age, group.workers[self.index], steps)

    @property
    def clock(self) -> int:
        """How often the worker has advanced."""
        return self._clock

    def wait_sync(self) -> None:
        """Returns when this node's updates have reached their owners, and its copies show what the owners had."""
        if self.cluster.closed:
            raise ClosedError("wait_sync: the cluster is closed")
        for group in self.cluster._groups:
            self._meet(self._library.wait_sync, group)

    def sync_all(self) -> None:
        """Returns when all workers of all nodes have called it, and each sees all that any of them has pushed before.

        The first worker of each process also reads the parameters of :func:`godwit.dense`, which are equal at all ranks then.
        """
        self.cluster.start()
        for group in self.cluster._groups:
            self._meet(self._library.sync_all, group)
        if self is self.cluster.worker:
            for table in list(self.cluster._tables.values()):
                if table.started:
                    table._synced()

    def barrier(self) -> None:
        """Returns when all workers of all nodes have called it."""
        self.cluster.start()
        for group in self.cluster._groups[:1]:
            self._meet(self._library.barrier, group)

    def _meet(self, call: Callable[..., int], group: _Group) -> None:
        self._settle()
        self._do(call, group.workers[self.index], (), None)

    def __repr__(self) -> str:
        return f"Worker({self.index} of {self.cluster!r})"


class Cluster:
    """The nodes of a run. :func:`init` makes one; tables begin at the first access to one of them."""

    def __init__(self, *, workers: int = 1, nodes: int = 1, seed: int = 0, policy: str = "", trace: Any = None, _launch: _launch.Launch | None = None) -> None:
        for what, x, low, high in (("workers", workers, 1, 4096), ("nodes", nodes, 1, 64), ("seed", seed, 0, 2**64 - 1)):
            if isinstance(x, bool) or not isinstance(x, int) or not low <= x <= high:
                raise ArgumentError(f"{what}={x!r}, want a whole number of {low} … {high}")
        self._launch = _launch
        if self._launch is not None and nodes > 1:
            raise ArgumentError(f"nodes={nodes} within a process of a run of {self._launch.world}: each rank is one node")
        self._library = _lib.load()
        self._alone = nodes == 1 and self.world == 1  # there is no other node
        self._config = {"nodes": nodes, "workers": workers, "seed": seed, "policy": policy}
        trace = os.fsdecode(trace or os.environ.get("GODWIT_TRACE") or "")
        self._trace = _checkpoint.utf8("trace", os.path.abspath(trace) if trace else "")
        self._tables: dict[str, Table] = {}
        self._waiting: list[Table] = []
        self._unprepared: list[Table] = []  # have begun, and something is left to be done to rows of some
        self._preparing = False
        self._from: str | None = None  # the checkpoint that tables begin from
        self._saved: str | None = None  # the checkpoint with all rows as they are
        self._groups: list[_Group] = []
        self._lock = threading.RLock()
        self._closing = threading.RLock()  # of who closes it, as long as it waits
        self._ending: list[_Group] = []  # groups of a cluster that is closed, and have not all ended
        self.closed = False
        self.workers: Sequence[Worker] = [Worker(self, i) for i in range(nodes * workers)]
        _open.add(self)

    @property
    def rank(self) -> int:
        """Which node of the run this process is."""
        return self._launch.rank if self._launch is not None else 0

    @property
    def world(self) -> int:
        """How many processes the run has."""
        return self._launch.world if self._launch is not None else 1

    @property
    def worker(self) -> Worker:
        """The first worker of this process."""
        return self.workers[0]

    def table(self, name: str, rows: int, dim: int, *, rule: str = "add", init: Init | None = None) -> Table:
        """Adds a table. Its rows begin with the first access to one of the tables that were added and have not begun."""
        self._library.own()
        if self.closed:
            raise ClosedError(f"table {name!r}: the cluster is closed")
        if not isinstance(name, str) or not name or name in self._tables:
            anew = "" if name not in self._tables else ": close the cluster first (cluster.close()) to make a model anew, as in a notebook"
            raise ArgumentError(f"a table is called {name!r}, want a name that no other table of the cluster has{anew}")
        _checkpoint.utf8("the name of a table", name)
        sizes = [_whole(f"table {name!r}: {what}", x, 1, high) for what, x, high in (("rows", rows, 2**48), ("dim", dim, 2**20 - 1))]
        if not isinstance(rule, str):
            raise ArgumentError(f"table {name!r}: rule={rule!r}, want the name of a rule, such as 'adagrad(lr=0.1)'")
        if init is not None and not isinstance(init, Init):
            raise ArgumentError(f"table {name!r}: init={init!r}, want godwit.zero(), uniform(low, high) or normal(mean, std)")
        t = Table(self, name, sizes[0], sizes[1], rule, init if init is not None else zero())
        self._tables[name] = t
        self._waiting.append(t)
        return t

    def _unnamed(self, kind: str) -> str:
        """Returns a name of a kind that no table has: the same at all ranks, which add the same tables."""
        return next(name for i in itertools.count(len(self._tables)) if (name := f"{kind}-{i}") not in self._tables)

    def sampler(self, table: Table, distribution: Any = "uniform", *, exponent: float = 0.75, level: str = "iid", distinct: bool = False) -> Sampler:
        """Makes a sampler of the rows of a table, before the first access to it.

        ``distribution`` is ``"uniform"``, ``"log_uniform"`` or how often each row occurs, of which the ``exponent`` is taken. ``level`` is how closely the
        samples follow it: the weaker, the fewer messages they cost. ``iid`` are independent draws; ``bounded`` ones depend on
        draws of a short time before; ``long-term`` ones follow it in the long run; of ``best-effort`` ones only the support is that of the distribution.
        The rows of a sample are different ones if they are ``distinct``.
        """
        if self.closed:
            raise ClosedError(f"a sampler of table {_table(table).name!r}: the cluster is closed")
        if _table(table).cluster is not self or table.started:
            raise ArgumentError(f"a sampler of table {table.name!r}: make it on the table's cluster, and before the first access")
        spec: dict[str, Any] = {"distribution": distribution, "level": level, "distinct": bool(distinct)}
        if level not in _LEVELS:
            raise ArgumentError(f"a sampler of table {table.name!r}: level={level!r}, want one of {', '.join(_LEVELS)}")
        if not isinstance(distribution, str):
            try:
                freq = [float(x) for x in distribution]
                exponent = float(exponent)
            except (TypeError, ValueError) as e:
                raise ArgumentError(f"a sampler of table {table.name!r}: the distribution is a {type(distribution).__name__}, want how often each row occurs: {e}") from e
            if len(freq) > table.rows or not all(0 <= x < math.inf for x in freq) or not any(freq) or not math.isfinite(exponent):
                raise ArgumentError(
                    f"a sampler of table {table.name!r}: {len(freq)} frequencies to the power of {exponent}, want at most one for each of {table.rows} rows, finite, at least 0 and not all 0, and a finite exponent"
                )
            spec.update(distribution="power", freq=freq, exponent=exponent)
        elif distribution not in _DISTRIBUTIONS:
            raise ArgumentError(f"a sampler of table {table.name!r}: distribution={distribution!r}, want {' or '.join(_DISTRIBUTIONS)}, or how often each row occurs")
        s = Sampler(table, spec)
        table._samplers.append(s)
        return s

    def start(self) -> None:
        """Begins the tables that have not begun. The first access to one of them does it too.

        What an interrupt or an error leaves to be done to their rows at first (from_pretrained, padding_idx), the next access does.
        """
        with self._lock:
            if self.closed:
                raise ClosedError("the cluster is closed")
            if self._preparing:  # this thread's: to prepare rows is to access them
                return
            if self._unprepared:
                self._prepare()
            tables = self._waiting
            if not tables:
                return
            prepares = any(t._prepare for t in tables)
            if prepares and self.world > 1 and len(self.workers) > 1:
                raise ArgumentError("tables with values to begin with (from_pretrained, padding_idx) need workers=1 in a run of several processes")
            config = self._config
            if self._from is not None:
                folder, number = _checkpoint.group_place(self._from, len(self._groups))
                if not self._groups or _checkpoint.has(folder, number):  # tables that were not there yet begin as they do
                    config = {**config, "from": f"{folder}#{number}"}
            try:
                group = _Group(self._library, config, tables, [w._clock for w in self.workers], self._launch, self._trace, self._complete)
            except ArgumentError as e:
                for t in [t for t in tables if _told_of(t, str(e))]:  # the others can begin without it
                    t._wrong = e
                    self._waiting.remove(t)
                    del self._tables[t.name]
                raise
            self._waiting = []
            self._groups.append(group)
            for i, t in enumerate(tables):
                t._begun, t._index = group, i
            self._unprepared = tables
            self._prepare()

    def _complete(self) -> None:
        """Raises if tables that are to begin cannot, as a rank that has to begin them, too, was lost or has closed its cluster."""
        for group in self._groups[:1]:
            self._library.check(self._library.ready(group.id, 0))
            closed = group.stats()["closed"]
            if closed:
                names = ", ".join(repr(t.name) for t in self._waiting)
                raise NodeLostError(f"rank {self.rank}: rank {closed[0]} has closed its cluster, and all ranks have to begin table {names}: make all tables before a rank closes")

    def _prepare(self) -> None:
        """Does what is left to be done to rows of tables that have begun."""
        tables, self._preparing = self._unprepared, True
        try:
            for t in tables:
                while t._prepare:
                    if self.rank == 0:
                        t._prepare[0](self.worker)
                    t._prepare.pop(0)
            if self.world > 1 and len(self.workers) == 1:  # also if this rank has nothing to prepare: another one may
                self.worker._meet(self._library.barrier, cast(_Group, tables[0]._begun))
        finally:
            self._preparing = False
        for t in tables:
            t._group = t._begun
        self._unprepared = []
        if len(self.workers) == 1:  # the first worker may be another thread's otherwise
            for t in tables:
                t._synced()

    def save(self, place: Any, extra: Any = None, *, keep: int = 0) -> str:
        """Writes a checkpoint of all rows, and what their rules keep, to a folder that all ranks see, and returns its place, as ``"folder#12"``.

        All ranks call it, each with a thread that does nothing else meanwhile, as do no other workers. Each node writes its own rows. ``extra`` is
        what else is to be kept, such as state_dicts, of rank 0; :func:`load` reads it. With ``keep`` only the last so many checkpoints stay there.
        """
        folder, number = _checkpoint.group_place(_checkpoint.place_of(place), 0)
        folder = _checkpoint.absolute(folder)
        if number:
            raise ArgumentError(f"save to {place!r}: give the folder only, the number is the next one")
        if isinstance(keep, bool) or not isinstance(keep, int) or keep < 0:
            raise ArgumentError(f"keep={keep!r}, want a whole number; 0 keeps all")
        self.start()
        if not self._groups:
            raise ArgumentError("there are no tables to save")
        kept = _kept(extra)
        self.worker._settle()
        folders = _checkpoint.folders(folder, len(self._groups))
        number = max(self._library.check(self._library.next(f.encode(), len(f.encode()))) for f in folders)
        for i in reversed(range(len(self._groups))):  # a checkpoint counts once that of the first group is there: then others may go
            last = {"keep": keep, "beside": folders[1:]} if i == 0 else {}
            config = json.dumps({"place": folders[i], "number": number, **last}).encode()
            state = kept if i == 0 else b""
            self.worker._do(self._library.save, self._groups[i].workers[0], (config, state), None, config, len(config), state, len(state))
        self._saved = f"{folder}#{number}"
        return self._saved

    def load(self, place: Any) -> Any:
        """Has all tables begin as they are in a checkpoint, and returns what was saved as ``extra``.

        All ranks call it, when the tables (and optimizers, which say the rules) are made and before the first access. How many ranks there were then
        does not matter. Values that tables were to begin with (from_pretrained) are dropped.
        """
        if self._groups:
            raise ArgumentError("load a checkpoint before the first access to a table: rows exist already")
        saved = _checkpoint.load(place)
        for t in self._waiting:
            t._prepare = []
        self._from = saved._place()
        return saved.extra()

    def state_dict(self) -> dict[str, Any]:
        """Returns where the rows are saved: for ``torch.distributed.checkpoint``, beside what torch saves. It is not collective; save is."""
        if self._saved is None and self.closed:
            raise ClosedError("the cluster is closed, and its rows are gone: call cluster.save(place) before")
        if self._groups and self._saved is None:
            raise ArgumentError("call cluster.save(place) first: rows have changed since the last time, or were never saved")
        return {"rows": self._saved or ""}

    def load_state_dict(self, state_dict: Any) -> None:
        """Loads the checkpoint that a state names: see :meth:`load`."""
        if not state_dict.get("rows"):
            raise ArgumentError("the state names no checkpoint of rows")
        self.load(state_dict["rows"])

    def note(self, *, epoch: int, of: int = 0, loss: float | None = None, items: int = 0, seconds: float = 0.0) -> None:
        """Tells of the end of an epoch, with its mean loss, those who watch the run (``trace`` of :func:`init`). What rank 0 tells is kept."""
        if isinstance(epoch, bool) or not isinstance(epoch, int):
            raise ArgumentError(f"epoch={epoch!r}, want a whole number")
        loss = None if loss is None or not math.isfinite(loss) else float(loss)
        if self._trace:
            self.start()
            text = json.dumps({"epoch": {"epoch": epoch, "of": int(of), "loss": loss, "items": int(items), "seconds": float(seconds)}}).encode()
            for group in self._groups[:1]:
                self._library.check(self._library.note(group.id, text, len(text)))

    def stats(self) -> dict[str, Any]:
        """What the nodes count, such as ``local`` and ``remote`` accesses. ``not_finite`` are vectors that were not pushed. It ends with the cluster."""
        if self.closed:
            raise ClosedError("stats: the cluster is closed, and what it counted is gone")
        all: dict[str, Any] = {"not_finite": 0}
        for group in self._groups:
            for name, x in group.stats().items():
                if isinstance(x, (int, float)) and not isinstance(x, bool):
                    all[name] = all.get(name, 0) + x
                else:
                    all.setdefault(name, x)
        return all

    def close(self) -> None:
        """Ends the nodes. The rows are gone then.

        With several ranks it returns when all have called it. It waits for the others as long as they live, and they read the rows of this rank until
        then; only barrier, sync_all, save and tables that have not begun, to which this rank does not come any more, raise there. An interrupt ends the wait; the others see a loss then.
        Calls of this rank's other threads raise ClosedError meanwhile; one that closes the cluster, too, waits as well.
        """
        with self._closing:
            with self._lock:
                if self.closed:
                    return
                failed = self._settle()
                groups = self._leave()
            try:
                left = [group for group in groups if not group.close(0)]  # all begin, so that nobody waits for this rank in one of them
                while left:
                    left = [group for group in left if not group.close(_lib.SLICE_MS)]
            except BaseException as e:
                self._abandon(groups, e)
                raise
            finally:
                self._ending = []
        if failed is not None:
            raise failed

    def _leave(self) -> list[_Group]:
        """Marks the cluster as closed, and returns what is to be ended."""
        self.closed = True
        _open.discard(self)
        groups, self._groups = self._groups, []
        self._ending = groups
        for t in self._tables.values():
            t._group = t._begun = None
        return groups

    def _abandon(self, groups: list[_Group], why: BaseException) -> None:
        """Ends nodes without waiting for the other ranks, which see a loss, and why."""
        left, ms, reason = groups, 0, f"{type(why).__name__}: {why}"[:500]
        while left:
            groups, left = left, []
            for group in groups:
                try:
                    if not group.abandon(reason, ms):
                        left.append(group)
                except Exception:  # it has ended
                    pass
            ms = _lib.SLICE_MS

    def _settle(self) -> Exception | None:
        """Waits for all that is waited for later, and returns what went wrong."""
        failed = None
        for w in self.workers:
            try:
                w._settle()
            except Exception as e:
                failed = failed or e
        return failed

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, _: Any, why: BaseException | None, __: Any) -> None:
        """Closes the cluster. A rank that fails waits for no other: they see a loss, and why."""
        if why is None or self.world == 1 or isinstance(why, SystemExit) and not why.code:
            self.close()
            return
        with self._lock:
            groups = self._ending if self.closed else self._leave()
        self._abandon(groups, why)

    def __repr__(self) -> str:
        return f"Cluster({len(self._tables)} tables, {len(self.workers)} workers{', closed' if self.closed else ''})"

    def __reduce__(self) -> Any:
        raise TypeError("a cluster cannot be pickled or copied: it is of this process")


def _whole(what: str, x: Any, low: int, high: int) -> int:
    """Returns a whole number, such as one of numpy, as Python's."""
    try:
        n = operator.index(x)
    except TypeError:
        n = low - 1
    if isinstance(x, bool) or not low <= n <= high:
        raise ArgumentError(f"{what}={x!r}, want a whole number of {low} … {high}")
    return n


def _table(x: Any) -> Table:
    if not isinstance(x, Table):
        raise TypeError(f"a table is of type {type(x).__name__}, want what cluster.table returned, or of a module its attribute table")
    return x


def _sampled(x: Any) -> Sample:
    if not isinstance(x, Sample):
        raise TypeError(f"a sample is of type {type(x).__name__}, want what prepare_sample returned")
    return x


def _kept(extra: Any) -> bytes:
    if extra is None:
        return b""
    import io

    import torch

    file = io.BytesIO()
    torch.save(extra, file)
    kept = file.getvalue()
    try:
        _checkpoint.restored(kept)
    except Exception as e:
        found = re.search(r"GLOBAL (\S+)", str(e))  # torch's advice beside is for those who load
        what = found.group(1) if found else e
        raise ArgumentError(f"extra has what load would not read, which takes tensors, numbers, texts and containers of them only: {what}") from e
    return kept


def _told_of(table: Table, text: str) -> bool:
    """Reports whether an error of the library is about a table, which it names in quotes as Go writes them, or about one of its samplers."""
    name = json.dumps(table.name, ensure_ascii=False)
    return f"table {name}" in text or any(f'sampler "{s._index}"' in text for s in table._samplers)


_traced = itertools.count()
_open: weakref.WeakSet[Cluster] = weakref.WeakSet()
_current: Cluster | None = None


def init(
    *,
    workers: int = 1,
    nodes: int = 1,
    seed: int = 0,
    policy: str = "",
    address: str | Sequence[str] = "",
    rank: int | None = None,
    world: int | None = None,
    run: str = "",
    tls: TLS | None = None,
    trace: Any = None,
) -> Cluster:
    """Makes the cluster that modules use which are not told of another.

    Under torchrun, its processes form one cluster: each is a node, whose id is its rank. They all make the same tables in the
    same order. Otherwise this process is all of it.

    With ``address``, of an etcd, the processes of the run meet there. Which ``rank`` this is, and of how many (``world``), a launcher's variables say
    unless they are given, and so is the name of the ``run``, which no other at this etcd may have. ``tls`` encrypts what the ranks, and the etcd, are told.

    ``trace`` is a folder. Each rank writes there what it does, in a folder of the run's name, as ``godwit train --trace`` does. Ranks that do not see the
    folder of rank 0 also send it what they do. ``godwit dashboard``, ``top`` and ``diagnose`` show it, also while the run lasts. The variable GODWIT_TRACE
    does the same.

    ``workers`` is how many threads access rows at a time. ``nodes`` above 1 puts several nodes into this process, which is for tests.
    """
    global _current
    if _current is not None:
        _current._library.own()
    if _current is not None and not _current.closed:
        raise ArgumentError(
            "there is a cluster already, which the first module makes if nobody has: godwit.cluster() is it. Close it first, or make another one by godwit.Cluster"
        )
    if address:
        launch: _launch.Launch | None = _launch.joining(address, rank, world, run)
    elif rank is not None or world is not None or run:
        raise ArgumentError("rank, world and run are for an etcd: give its address, too, or let a launcher say them by RANK and WORLD_SIZE")
    else:
        launch = _launch.find()
    if launch is not None:
        launch.tls = tls
    elif tls is not None:
        raise ArgumentError("tls is for several processes, and this one is the whole run")
    _current = Cluster(workers=workers, nodes=nodes, seed=seed, policy=policy, trace=trace, _launch=launch)
    if launch is not None:
        launch.take()
    return _current


def cluster() -> Cluster:
    """Returns the cluster of :func:`init`, which it calls if nobody has."""
    if _current is None or _current.closed:
        return init()
    return _current


@atexit.register
def _end() -> None:
    why = getattr(sys, "last_value", None)
    for c in list(_open):
        try:
            if c.world > 1 and why is not None:  # this rank ends by an exception: the others are to see a loss, and why, and not to wait
                c._abandon(c._groups, why)
            else:
                c.close()
        except Exception:  # a forked child, or a run that has failed
            pass
