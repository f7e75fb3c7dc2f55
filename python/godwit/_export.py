"""Plain torch modules with the rows of the cluster."""

from __future__ import annotations

import copy
from typing import Any, Mapping, cast

import torch

from . import _buffers, _state
from .errors import ArgumentError
from .nn import Embedding, EmbeddingBag, _Module

__all__ = ["to_torch", "SomeRows"]


class SomeRows(torch.nn.Module):
    """Some rows of an embedding, found by the ids that they have there. The row of any other id is 0."""

    ids: torch.Tensor
    embedding: torch.nn.Module

    def __init__(self, ids: torch.Tensor, embedding: torch.nn.Module) -> None:
        super().__init__()
        self.register_buffer("ids", ids)
        self.embedding = embedding

    def forward(self, input: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        # By bisection, as ONNX has no searchsorted: at is the last position whose id is at most that of the input, or 0.
        n = self.ids.shape[0]
        input, at = input.to(torch.int64), torch.zeros_like(input, dtype=torch.int64)
        for bit in reversed(range((n - 1).bit_length())):
            next = at + (1 << bit)
            fits = (next < n) & (self.ids[next.clamp(max=n - 1)] <= input)
            at = torch.where(fits, next, at)
        at = torch.where(self.ids[at] == input, at, n)  # where a row of zeros is
        result: torch.Tensor = self.embedding(at, *args, **kwargs)
        return result


def to_torch(model: torch.nn.Module, ids: Mapping[Any, Any] | None = None) -> torch.nn.Module:
    """Returns a copy of a model in which modules of ``godwit.nn`` are those of ``torch.nn``, with the rows as they are now.

    Its outputs are equal, and torch exports it: ``torch.export``, ONNX, safetensors. ``ids`` are the rows that are wanted of a table, by
    its module, the module's name in the model or the table's; of other tables all rows are copied. The copy finds them by the same ids,
    and has zeros for others. More than a state_dict holds is refused.
    """
    wanted = dict(ids or {})
    memo: dict[int, Any] = {}
    for name, m in model.named_modules():
        if isinstance(m, _Module):
            keys = [k for k in dict.fromkeys((name, m.table.name, m)) if k in wanted]
            if len(keys) > 1:
                raise ArgumentError(f"ids has the rows of module {name!r} twice, as {keys[0]!r} and {keys[1]!r}")
            memo[id(m)] = _plain(m, wanted.pop(keys[0]) if keys else None)
    if wanted:
        raise ArgumentError(f"ids has rows of {next(iter(wanted))!r}, which is no module with rows in the model, and no table of one")
    plain: torch.nn.Module = copy.deepcopy(model, memo)
    return plain


def _distinct(ids: Any) -> torch.Tensor:
    return cast(torch.Tensor, ids.unique())  # in ascending order


def _plain(m: _Module, ids: Any) -> torch.nn.Module:
    if ids is None:
        _state.check_size(m.table, m.embedding_dim, "values")
        return _make(m, m.rows(torch.arange(m.num_embeddings, device="cpu")), m.padding_idx)
    rows = _buffers.rows(ids)
    chosen = _distinct((rows if _buffers.is_tensor(rows) else torch.tensor(rows, device="cpu")).reshape(-1))
    if not len(chosen):
        raise ArgumentError(f"ids has no rows of table {m.table.name!r}: leave it out for all rows")
    weight = torch.cat([m.rows(chosen), torch.zeros(1, m.embedding_dim, dtype=torch.float32, device="cpu")])
    padding: Any = (chosen == m.padding_idx).nonzero() if m.padding_idx is not None else []
    if m.padding_idx is not None and not len(padding) and isinstance(m, EmbeddingBag):  # bags leave it out
        chosen = _distinct(torch.cat([chosen, torch.tensor([m.padding_idx], device="cpu")]))
        return _plain(m, chosen)
    return SomeRows(chosen, _make(m, weight, int(padding[0]) if len(padding) else None)).train(m.training)


def _make(m: Any, weight: torch.Tensor, padding_idx: int | None) -> torch.nn.Module:
    rows, dim = weight.shape
    plain: torch.nn.Module
    if isinstance(m, Embedding):
        plain = torch.nn.Embedding(rows, dim, padding_idx, scale_grad_by_freq=m.scale_grad_by_freq, _weight=weight)
    else:
        plain = torch.nn.EmbeddingBag(
            rows,
            dim,
            scale_grad_by_freq=m.scale_grad_by_freq,
            mode=m.mode,
            _weight=weight,
            include_last_offset=m.include_last_offset,
            padding_idx=padding_idx,
        )
    plain.requires_grad_(m.weight.requires_grad)
    return plain.to(m._dtype).train(m.training)
