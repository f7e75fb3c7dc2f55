"""Dense parameters in a table."""

from __future__ import annotations

from typing import Any, cast

import torch

from ._cluster import Cluster
from ._cluster import cluster as current
from .errors import ArgumentError
from .nn import Weight

WIDTH = 1024  # floats of a row, or as many as there are
ALWAYS = 1 << 61  # clocks


class Dense(Weight):
    """Stands for the parameters of a module in optimizers of ``godwit.optim``: see :func:`dense`."""

    _of: list[torch.nn.Parameter]

    _memory: torch.Tensor  # of the gradients, once there are any

    @property
    def grad(self) -> Any:
        """The gradients of the parameters, as rows: in the same memory, so that what scales or clips these rows scales those."""
        if all(p.grad is None for p in self._of):
            return None
        rows = self._gather().view(self.table.rows, -1)
        ids = torch.arange(self.table.rows, device="cpu")
        return torch.sparse_coo_tensor(ids.unsqueeze(0), rows, self.shape, is_coalesced=True, check_invariants=False)

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None:
            raise ArgumentError("the gradient of godwit.dense is that of the module's parameters")
        self.clear()

    @torch.no_grad()
    def _gather(self) -> torch.Tensor:
        """Has the gradients of all parameters in memory that follows each other, and returns it."""
        if "_memory" not in self.__dict__:
            self._memory = torch.zeros(self.table.rows * self.table.dim, dtype=torch.float32, device="cpu")
        at = 0
        for p in self._of:
            place = self._memory[at : at + p.numel()].view_as(p)
            at += p.numel()
            if p.grad is None:
                place.zero_()
            elif p.grad.data_ptr() != place.data_ptr():
                place.copy_(p.grad)
                p.grad = place
        return self._memory

    def distinct(self, ids: torch.Tensor) -> bool:
        return True

    @torch.no_grad()
    def spread(self) -> None:
        """Reads the parameters, after a push."""
        rows = self.table.cluster.worker.pull(self.table, torch.arange(self.table.rows, device="cpu")).view(-1)
        at = 0
        for p in self._of:
            p.copy_(rows[at : at + p.numel()].view_as(p))
            at += p.numel()

    def store(self) -> None:
        """Writes the parameters, which were loaded, and leaves what the rule keeps of them."""
        if self.table.started:  # else they are written when it begins
            self._write(self.table.cluster.worker)

    def _write(self, worker: Any) -> None:
        rows = torch.zeros(self.table.rows * self.table.dim, dtype=torch.float32, device="cpu")
        at = 0
        for p in self._of:
            rows[at : at + p.numel()] = p.detach().reshape(-1)
            at += p.numel()
        worker.set(self.table, torch.arange(self.table.rows, device="cpu"), rows.view(self.table.rows, -1), keep_state=True)

    def begin(self) -> None:
        """Announces the rows and reads the parameters: the first forward of the module does it."""
        worker = self.table.cluster.worker
        worker.intent(self.table, torch.arange(self.table.rows, device="cpu"), worker.clock, ALWAYS)
        self.spread()

    def clear(self) -> None:
        for p in self._of:
            p.grad = None


def dense(module: torch.nn.Module, *, name: str | None = None, cluster: Cluster | None = None) -> Dense:
    """Puts the parameters of a module into a table, and returns what stands for them in optimizers of ``godwit.optim``.

    The first forward of the module announces all rows for ever, so that each rank has a copy of them, which is synchronized while it works. A
    step pushes the gradients, and reads the parameters back. All ranks begin with the parameters of rank 0. Unlike in
    DistributedDataParallel no rank waits for another, so a step may lack the last ones of others.
    """
    params = list(module.parameters())
    if not params:
        raise ArgumentError(f"godwit.dense of a {type(module).__name__} without parameters")
    for n, p in module.named_parameters():
        if p.dtype != torch.float32 or p.device.type != "cpu":
            raise ArgumentError(f"godwit.dense: parameter {n} is of type {p.dtype} on device {p.device}, want float32 on the CPU")
    on = cluster if cluster is not None else current()
    floats = sum(p.numel() for p in params)
    dim = min(WIDTH, floats)
    d: Dense = Dense.of(on.table(name or f"dense-{len(on._tables)}", -(-floats // dim), dim))
    d._of = params
    d.table.begin(prepare=lambda worker: d._write(worker))

    def first(*_: Any) -> None:
        hook.remove()
        d.begin()

    hook = module.register_forward_pre_hook(first)
    cast(Any, module).register_load_state_dict_post_hook(lambda *_: d.store())
    return d
