"""Dense parameters in a table."""

from __future__ import annotations

import weakref
from typing import Any, Iterator, Sequence, cast

import torch

from ._cluster import Cluster
from ._cluster import cluster as current
from .errors import ArgumentError
from .nn import Weight

WIDTH = 1024  # floats of a row, at most
NARROW = 64  # floats of a row, at least, where narrower rows would take less room
ALWAYS = 1 << 61  # clocks


class Dense(Weight):
    """Stands for the parameters of a module in optimizers of ``godwit.optim``: see :func:`dense`."""

    _whose = (
        "what godwit.dense returned: it only stands for the parameters of a module in godwit.optim, which takes it, or a list of several. "
        "The module's parameters have the values"
    )

    _refused = "what godwit.dense returned, which one of godwit.optim takes: or give it module.parameters(), without godwit.dense"

    _of: list[torch.nn.Parameter]  # each begins a row
    _announced = False

    _having: list[torch.nn.Parameter]  # have gradients
    _ids: torch.Tensor  # of the rows of these
    _memory: torch.Tensor  # of their gradients

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("what godwit.dense returned cannot be copied: it stands for the parameters of a module, which can")

    @property
    def grad(self) -> Any:
        """The gradients of the parameters that have one, as rows: in the same memory, so that what scales or clips these rows scales those."""
        if all(p.grad is None for p in self._of):
            return None
        self._gather()
        return torch.sparse_coo_tensor(self._ids.unsqueeze(0), self._memory, self.shape, is_coalesced=True, check_invariants=False)

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None:
            raise ArgumentError("the gradient of godwit.dense is that of the module's parameters")
        self.clear(True)

    @torch.no_grad()
    def _gather(self) -> None:
        """Has all gradients in memory that follows each other. Where other parameters have one than before it is other memory, as gradients may be in that."""
        having = [p for p in self._of if p.grad is not None]
        if list(map(id, having)) != list(map(id, self.__dict__.get("_having", []))):
            ids: Any = torch.arange(self.table.rows, device="cpu")
            parts = ids.split([_rows(p, self.table.dim) for p in self._of])
            self._having, self._ids = having, torch.cat([x for p, x in zip(self._of, parts) if p.grad is not None])
            self._memory = torch.zeros(len(self._ids), self.table.dim, dtype=torch.float32, device="cpu")
        for p, place, rest in _places(having, self._memory):
            grad = cast(torch.Tensor, p.grad)
            if grad.data_ptr() != place.data_ptr():
                place.copy_(grad)
                p.grad = place
            rest.zero_()  # which what scales the rows by NaN has scaled, too

    def distinct(self, ids: torch.Tensor) -> bool:
        return True

    @torch.no_grad()
    def spread(self) -> None:
        """Reads the parameters: when the table begins, at the first forward of the module, after a push, and when all ranks see all pushes. Announces the rows at first."""
        worker, ids = self.table.cluster.worker, torch.arange(self.table.rows, device="cpu")
        if not self._announced:
            worker.intent(self.table, ids, worker.clock, ALWAYS)
            self._announced = True
        rows = worker.pull(self.table, ids)
        for p, place, _ in _places(self._of, rows):
            p.copy_(place)

    def store(self) -> None:
        """Writes the parameters, which were loaded, and leaves what the rule keeps of them."""
        if self.table.started:  # else they are written when it begins
            self._write(self.table.cluster.worker)

    def _write(self, worker: Any) -> None:
        rows = torch.zeros(self.table.rows, self.table.dim, dtype=torch.float32, device="cpu")
        for p, place, _ in _places(self._of, rows):
            place.copy_(p.detach())
        worker.set(self.table, torch.arange(self.table.rows, device="cpu"), rows, keep_state=True)

    def clear(self, set_to_none: bool) -> None:
        for p in self._of:
            p.grad = None if set_to_none or p.grad is None else p.grad.detach().zero_()


def _rows(p: torch.Tensor, dim: int) -> int:
    """Returns how many rows a parameter takes. It shares none, so that one without gradient is left alone."""
    return -(-p.numel() // dim)


def _places(params: Sequence[torch.nn.Parameter], rows: torch.Tensor) -> Iterator[tuple[torch.nn.Parameter, torch.Tensor, torch.Tensor]]:
    """Yields parameters, where their values are in the rows of all of them, and what their last rows have beyond."""
    at, floats, dim = 0, rows.view(-1), rows.shape[1]
    for p in params:
        end, next = at + p.numel(), at + _rows(p, dim) * dim
        yield p, floats[at:end].view_as(p), floats[end:next]
        at = next


def _width(params: Sequence[torch.nn.Parameter]) -> int:
    """Returns how many floats rows have: WIDTH, or fewer where small parameters would leave more than a quarter of them unused."""
    dim, floats = min(WIDTH, max(p.numel() for p in params)), sum(p.numel() for p in params)
    while dim > NARROW and 3 * dim * sum(_rows(p, dim) for p in params) > 4 * floats:
        dim = max(NARROW, dim // 2)
    return dim


def dense(module: torch.nn.Module, *, name: str | None = None, cluster: Cluster | None = None) -> Dense:
    """Puts the parameters of a module into a table, and returns what stands for them in optimizers of ``godwit.optim``.

    All rows are announced for ever when the table begins, so that each rank has a copy of them, which is synchronized while it works. A
    step pushes the gradients, and reads the parameters back. All ranks begin with the parameters of rank 0. Unlike in
    DistributedDataParallel no rank waits for another, so a step may lack the last ones of others: after ``worker.sync_all()``, which all ranks call, parameters
    have all steps of all ranks, as before they are evaluated or saved. A parameter without gradient is left alone, as by torch.

    From then on, parameters are changed by steps and by the module's ``load_state_dict`` only: what changes them in place otherwise, such as
    ``p.copy_``, ``torch.nn.init`` or ``load_state_dict`` of a part of the module, is undone by the next step. A copy of the module has parameters of its own,
    which are in no table.
    """
    params = list(module.parameters())
    if not any(p.numel() for p in params):
        raise ArgumentError(f"godwit.dense of a {type(module).__name__} without parameters")
    for n, p in module.named_parameters():
        if p.dtype != torch.float32 or p.device.type != "cpu":
            raise ArgumentError(f"godwit.dense: parameter {n} is of type {p.dtype} on device {p.device}, want float32 on the CPU")
    on = cluster if cluster is not None else current()
    dim = _width(params)
    d: Dense = Dense.of(on.table(name or on._unnamed("dense"), sum(_rows(p, dim) for p in params), dim))
    d._of = params
    d.table.begin(prepare=lambda worker: d._write(worker))
    stands = weakref.ref(d)  # the table outlives the module

    def synced() -> None:
        left = stands()
        if left is not None:
            left.spread()

    d.table._synced = synced

    def first(m: Any, *_: Any) -> None:
        if m is module and not torch.compiler.is_compiling():  # and no copy, which has its hooks
            hook.remove()
            d.spread()

    def loaded(m: Any, *_: Any) -> None:
        if m is module:
            d.store()

    hook = module.register_forward_pre_hook(first)
    cast(Any, module).register_load_state_dict_post_hook(loaded)
    return d
