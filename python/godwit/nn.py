"""Embeddings whose rows live on the cluster, with the names and arguments of ``torch.nn``.

A module's forward reads the distinct rows of its input. Its backward leaves the rows' gradients in
``weight.grad``, as a sparse tensor, as ``torch.nn.Embedding(sparse=True)`` does. So accumulation, a module that is
called twice, hooks and ``GradScaler`` work as they do there. ``godwit.optim`` pushes the gradients.

The rows are not parameters of the module: ``model.parameters()`` has the dense ones only, for torch's own
optimizers and DistributedDataParallel, and :func:`parameters` has the others.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import sys
import warnings
from typing import Any, Callable, Iterable, Iterator, Mapping, TypeVar, cast

import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable

from . import _buffers, _state
from ._cluster import Cluster, Init, Table, _whole, cluster, normal, uniform
from .errors import ArgumentError, RowError

__all__ = ["Embedding", "EmbeddingBag", "EmbeddingBagCollection", "EmbeddingBagConfig", "Weight", "parameters", "clip_grad_norm_"]


_Forward = TypeVar("_Forward", bound=Callable[..., torch.Tensor])


def _eager(forward: _Forward) -> _Forward:
    """Leaves a forward out of what ``torch.compile`` compiles. With ``fullgraph`` that is an error, which tells the reason."""
    disable = cast(Any, torch.compiler).disable
    try:
        return cast(_Forward, disable(forward, reason="rows are read from the cluster, which no graph of torch does: without fullgraph=True what is before and after is compiled"))
    except TypeError:  # an older version of torch takes no reason
        return cast(_Forward, disable(forward))


# Reports whether torch.jit.trace runs a forward, and whether torch.export does: what older versions of torch do not tell.
_tracing: Callable[[], bool] = cast(Any, torch.jit).is_tracing
_exporting: Callable[[], bool] = getattr(torch.compiler, "is_exporting", lambda: False)

# What tells of a Weight without its elements.
_ABOUT = frozenset(
    "size dim ndimension numel nelement stride storage_offset element_size is_contiguous is_floating_point is_complex is_signed is_inference get_device "
    "requires_grad_ register_hook register_post_accumulate_grad_hook retain_grad __len__ __format__ __hash__ __dir__ _is_view is_tensor grad".split()
)
_GRADS = tuple(getattr(cast(Any, torch.Tensor), name).__get__ for name in ("grad", "_grad", "_base"))
_LEAF = cast(Any, torch.Tensor).is_leaf.__get__  # which optimizers ask first
_QUICK = frozenset((_GRADS[0], cast(Any, torch.Tensor).grad.__set__, cast(Any, torch.Tensor).requires_grad.__get__))


class Weight(torch.nn.Parameter):
    """Stands for the rows of a table in optimizers: it has their shape and their gradient, and no values.

    Its elements are NaN, all in one place of memory. What would read or change them raises: ``embedding.rows(ids)`` reads rows.
    """

    table: Table

    _whose = (
        "embedding.weight: the rows are on the cluster, and this only stands for them in godwit.optim. embedding.rows(ids) reads rows, "
        "a forward gives them with a gradient, and init= or from_pretrained says how they begin"
    )

    _refused = (
        "embedding.weight, and cannot change the rows, which are on the cluster: give godwit.parameters(model) to one of godwit.optim, and model.parameters() to torch.optim"
    )

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _QUICK:  # of each step
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args)
        name = getattr(func, "__name__", "")
        if name == "__get__":
            if func == _LEAF and "_joining" not in args[0].__dict__ and isinstance(sys._getframe(1).f_locals.get("self"), torch.optim.Optimizer):
                raise ArgumentError(f"an optimizer of torch.optim was given {cls._refused}")
            with torch._C.DisableTorchFunctionSubclass():
                found = func(*args)
            if not isinstance(found, torch.Tensor) or func in _GRADS:
                return found
            name = "data"
        elif name in ("__set__", "__delete__") or name in _ABOUT:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        raise ArgumentError(f"{name} of {cls._whose}")  # and no TypeError, which operators replace by one of their own

    @classmethod
    def of(cls, table: Table) -> Any:
        w: Any = torch.Tensor._make_subclass(cls, torch.full((), math.nan, dtype=torch.float32, device="cpu").expand(table.rows, table.dim), True)
        w.table = table
        return w

    def sparse(self, ids: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """Returns a gradient of distinct rows. The second that is added to one is told of where no optimizer pushes any."""
        self.__dict__["_distinct"] = ids
        table = self.table
        if "_optimizer" not in table.__dict__ and self.grad is not None and not self.__dict__.get("_told"):
            self.__dict__["_told"] = True
            warnings.warn(
                f"table {table.name!r} has no optimizer: its rows stay as they are, and their gradients only add up. Give godwit.parameters(model) to one of "
                "godwit.optim before the first forward, or freeze the rows by requires_grad_(False)",
                RuntimeWarning,
            )
        return torch.sparse_coo_tensor(ids.unsqueeze(0), values, (table.rows, table.dim), check_invariants=False)

    def distinct(self, ids: torch.Tensor) -> bool:
        """Reports whether the rows of a gradient are known to be distinct: they are those that backward made last, in the same memory."""
        last = self.__dict__.get("_distinct")
        return last is not None and ids.data_ptr() == last.data_ptr() and ids.numel() == last.numel()

    def spread(self) -> None:
        """Is called after a step."""

    def clear(self, set_to_none: bool) -> None:
        """Is called by zero_grad, after torch's has set the gradient to zero if it is not to be None."""
        if set_to_none:
            self.grad = None

    def __repr__(self) -> str:  # type: ignore[override]
        return f"{type(self).__name__} of {self.table!r}"

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError(f"the rows of table {self.table.name!r} cannot be copied: they are in the cluster of this process. godwit.to_torch(model) copies them")

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"the rows of table {self.table.name!r} cannot be pickled: save the module's state_dict()")


@contextlib.contextmanager
def _placed(table: Table, ids: torch.Tensor) -> Iterator[None]:
    """Has an error of a row tell its position among ids where their distinct rows are read."""
    try:
        yield
    except RowError:
        table.cluster.worker._look(table, ids)
        raise


class _Rows(torch.autograd.Function):
    """The rows of distinct ids. The gradient is sparse, and has no row for the id that is padding."""

    @staticmethod
    def forward(ctx: Any, weight: Weight, ids: torch.Tensor, padding: int, device: torch.device, look: bool) -> torch.Tensor:
        ctx.weight, ctx.padding = weight, padding
        ctx.save_for_backward(ids)
        worker = weight.table.cluster.worker
        rows: torch.Tensor = worker._look(weight.table, ids) if look else worker.pull(weight.table, ids)
        return rows if device.type == "cpu" else rows.to(device, non_blocking=True)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
        (ids,) = ctx.saved_tensors
        grad = grad.to("cpu", torch.float32)
        if ctx.padding >= 0:
            keep = torch.arange(len(ids), device="cpu") != ctx.padding
            ids, grad = ids[keep], grad[keep]
        return ctx.weight.sparse(ids, grad), None, None, None, None


class _Lookup(torch.autograd.Function):
    """The rows of any ids. The gradient has a row for each distinct id that is not padding: the sum over the positions where it occurs."""

    @staticmethod
    def forward(ctx: Any, weight: Weight, ids: torch.Tensor, padding_idx: int | None, device: torch.device, look: bool) -> torch.Tensor:
        table = weight.table
        worker = table.cluster.worker
        if look:
            distinct, where = _buffers.unique(table.cluster._library, ids)
            with _placed(table, ids):
                out = worker._look(table, distinct)[where]
        else:
            out, distinct, where = worker._lookup(table, ids)
        ctx.weight, ctx.padding_idx = weight, padding_idx
        ctx.save_for_backward(distinct, where)
        return cast(torch.Tensor, out if device.type == "cpu" else out.to(device, non_blocking=True))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
        weight, (ids, where) = ctx.weight, ctx.saved_tensors
        if grad.dtype is not torch.float32 or not grad.is_cpu:
            grad = grad.to("cpu", torch.float32)
        grad = _buffers.add(weight.table.cluster._library, where, ids.numel(), grad)
        if ctx.padding_idx is not None:
            keep = ids != ctx.padding_idx
            if not bool(keep.all()):
                ids, grad = ids[keep], grad[keep]
        return weight.sparse(ids, grad), None, None, None, None


def _distinct(input: torch.Tensor, table: Table, padding_idx: int | None, weight: Weight, look: bool) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Returns the rows of the distinct ids of an input, the position there of each id, and that of the padding or -1."""
    ids, inverse = _buffers.unique(table.cluster._library, _checked(input))
    padding = -1
    if padding_idx is not None:
        at = (ids == padding_idx).nonzero()
        padding = int(at[0]) if len(at) else -1
    with _placed(table, input):
        rows = _Rows.apply(weight, ids, padding, input.device, look)
    return rows, inverse.to(input.device), padding


_UNTRACED = "a model with rows of a cluster cannot be scripted, traced or exported: do it with godwit.to_torch(model), a copy with modules of torch.nn"


def _checked(input: Any) -> torch.Tensor:
    if _tracing() or _exporting() or isinstance(input, torch.fx.Proxy):
        raise ArgumentError(_UNTRACED)
    if not isinstance(input, torch.Tensor):
        raise TypeError(f"the input is of type {type(input).__name__}, want a tensor of integers")
    return cast(torch.Tensor, _buffers.rows(input))


def _check_device(device: Any) -> None:
    """Raises unless a module's argument ``device`` is that of rows."""
    if device is not None and torch.device(device).type != "cpu":
        raise ArgumentError(
            f"device={device} is not supported: the rows of the cluster are in the memory of its processes. Leave device out: outputs are on the device of the ids"
        )


class _Module(torch.nn.Module):
    """What modules with rows of one table have in common."""

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None
    _dtype: torch.dtype  # of the output

    def _make(
        self, rows: int, dim: int, padding_idx: int | None, max_norm: Any, device: Any, dtype: Any, name: str | None, init: Init | None, on: Cluster | None
    ) -> None:
        if max_norm is not None:
            raise ArgumentError("max_norm is not supported: rows are not changed when they are read")
        if dtype not in (None, torch.float32):
            raise ArgumentError(f"dtype={dtype} is not supported: rows are float32")
        _check_device(device)
        if padding_idx is not None:
            padding_idx = _whole("padding_idx", padding_idx, -rows, rows - 1) % rows
        on = on if on is not None else cluster()
        self.num_embeddings, self.embedding_dim, self.padding_idx = rows, dim, padding_idx
        self._dtype = dtype or torch.get_default_dtype()
        self.table = on.table(name or on._unnamed(type(self).__name__), rows, dim, init=init if init is not None else normal())
        object.__setattr__(self, "_rows", Weight.of(self.table))
        if padding_idx is not None:
            self.table.begin(prepare=lambda w: w.set(self.table, [padding_idx], torch.zeros(1, dim, dtype=torch.float32, device="cpu")))

    @property
    def weight(self) -> Weight:
        """Stands for the rows in optimizers."""
        return cast(Weight, self.__dict__["_rows"])

    @weight.setter
    def weight(self, value: Any) -> None:
        raise AttributeError("the rows of a module of godwit.nn are set by load_state_dict or from_pretrained, not by assigning weight")

    def register_parameter(self, name: str, param: Any) -> None:
        if name == "weight":  # a parameter that is assigned comes here
            type(self).weight.fset(self, param)  # type: ignore[attr-defined]
        super().register_parameter(name, param)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Freezes the rows, or has them have gradients again. That of a module around this one reaches parameters only, which rows are not."""
        self.weight.requires_grad_(requires_grad)
        return super().requires_grad_(requires_grad)

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Any:
        """Is called by ``to``, ``half``, ``double`` and others. Rows stay float32, and the output takes the type that parameters take."""
        self._dtype = fn(torch.empty(0, dtype=self._dtype, device="cpu")).dtype
        return cast(Any, super())._apply(fn, recurse)

    def rows(self, ids: Any) -> Any:
        """Reads rows, without gradient."""
        return self.table.cluster.worker._look(self.table, ids)

    def _looks(self) -> bool:
        """Reports whether a forward makes no rows: in evaluation, and where it can have no gradient."""
        return not (self.training and torch.is_grad_enabled() and self.weight.requires_grad)

    def _fill(self, values: torch.Tensor, keep_state: bool = False) -> None:
        if not isinstance(values, torch.Tensor):
            raise ArgumentError(f"values are of type {type(values).__name__}, want a tensor")
        if tuple(values.shape) != (self.num_embeddings, self.embedding_dim):
            raise ArgumentError(f"values have the shape {tuple(values.shape)}, want {(self.num_embeddings, self.embedding_dim)}")
        values = values.detach().to("cpu", torch.float32, copy=not self.table.started)  # what is written later does not follow the caller's

        def fill(w: Any) -> None:
            _state.in_parts(self.num_embeddings, lambda rows, begin, end: w.set(self.table, rows, values[begin:end].contiguous(), keep_state=keep_state))

        if self.table.started:
            fill(self.table.cluster.worker)
        else:
            self.table.begin(prepare=fill)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if not _state.with_rows():
            getattr(destination, "_metadata", {}).get(prefix[:-1], {})["rows"] = "elsewhere"
            return
        _state.check_size(self.table, self.embedding_dim, "values")
        destination[prefix + "weight"] = self.rows(torch.arange(self.num_embeddings, device="cpu"))

    def _load_from_state_dict(self, state: Mapping[str, Any], prefix: str, metadata: Any, strict: bool, missing: list[str], unexpected: list[str], errors: list[str]) -> None:
        name = prefix + "weight"
        value = state.get(name)
        super()._load_from_state_dict({k: v for k, v in state.items() if k != name}, prefix, metadata, strict, missing, unexpected, errors)
        if value is None:
            if strict and _state.with_rows() and metadata.get("rows") != "elsewhere":
                missing.append(name)
            return
        try:
            self._fill(value, keep_state=True)
        except ArgumentError as e:
            errors.append(f"{name}: {e}")

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError(f"a module with the rows of table {self.table.name!r} cannot be copied: they are in the cluster of this process. godwit.to_torch(model) is a copy with modules of torch.nn")

    def __prepare_scriptable__(self) -> Any:
        """Is called by ``torch.jit.script``."""
        raise ArgumentError(_UNTRACED)

    def __getstate__(self) -> Any:
        raise TypeError(f"a module with the rows of table {self.table.name!r} cannot be pickled: save its state_dict()")

    def extra_repr(self) -> str:
        s = f"{self.num_embeddings}, {self.embedding_dim}"
        return s if self.padding_idx is None else f"{s}, padding_idx={self.padding_idx}"


class Embedding(_Module):
    """``torch.nn.Embedding`` whose rows live on the cluster.

    ``name`` names the table (a number is made up), ``init`` gives the first values (normal(0, 1) as in torch), ``cluster`` is where
    it is (that of ``godwit.init``). Gradients are sparse, whatever ``sparse`` says. ``max_norm`` is refused, and so is a ``device`` that is not the CPU: outputs
    are on the device of the ids. Rows are float32; the output is of another type after ``to(torch.bfloat16)``, ``half()`` and the like.

    Forwards and optimizers use the cluster's first worker: one thread at a time, another gets BusyError.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        name: str | None = None,
        init: Init | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        super().__init__()
        self.scale_grad_by_freq = scale_grad_by_freq
        self._make(num_embeddings, embedding_dim, padding_idx, max_norm, device, dtype, name, init, cluster)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: torch.Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = True,
        **rest: Any,
    ) -> Embedding:
        """Makes a module with these values. With ``freeze`` it has no gradient."""
        rows, dim = _matrix(embeddings)
        m = cls(rows, dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, **rest)
        m._fill(embeddings)
        m.weight.requires_grad_(not freeze)
        return m

    @_eager
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Takes ids, a tensor of integers of any shape, and returns their rows: ``(*input.shape, embedding_dim)``. An id that is no row raises RowError (an IndexError)."""
        if not self.scale_grad_by_freq:
            out = cast(torch.Tensor, _Lookup.apply(self.weight, _checked(input), self.padding_idx, input.device, self._looks()))
            return out if self._dtype is torch.float32 else out.to(self._dtype)
        rows, at, padding = _distinct(input, self.table, self.padding_idx, self.weight, self._looks())
        return F.embedding(at, rows, padding if padding >= 0 else None, scale_grad_by_freq=True).to(self._dtype)


_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


class EmbeddingBag(_Module):
    """``torch.nn.EmbeddingBag`` whose rows live on the cluster: see :class:`Embedding`."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = True,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
        *,
        name: str | None = None,
        init: Init | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        super().__init__()
        if mode not in ("sum", "mean", "max"):
            raise ArgumentError(f"mode={mode!r}, want sum, mean or max")
        self.scale_grad_by_freq, self.mode, self.include_last_offset = scale_grad_by_freq, mode, include_last_offset
        self._make(num_embeddings, embedding_dim, padding_idx, max_norm, device, dtype, name, init, cluster)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: torch.Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = True,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        **rest: Any,
    ) -> EmbeddingBag:
        """Makes a module with these values. With ``freeze`` it has no gradient."""
        rows, dim = _matrix(embeddings)
        m = cls(rows, dim, max_norm, norm_type, scale_grad_by_freq, mode, sparse, include_last_offset, padding_idx, **rest)
        m._fill(embeddings)
        m.weight.requires_grad_(not freeze)
        return m

    @_eager
    def forward(self, input: torch.Tensor, offsets: torch.Tensor | None = None, per_sample_weights: torch.Tensor | None = None) -> torch.Tensor:
        """Takes bags of ids, and returns ``(bags, embedding_dim)``.

        ``input`` are integers of the shape ``(bags, n)``, or of one dimension with ``offsets``, where each bag begins (and the last one ends, with ``include_last_offset``).
        ``per_sample_weights`` are for ``mode="sum"``, and of the shape of ``input``. An id that is no row raises RowError (an IndexError).
        """
        if offsets is not None and (not isinstance(offsets, torch.Tensor) or offsets.dtype not in _INTEGERS):
            raise TypeError(f"offsets are of type {getattr(offsets, 'dtype', type(offsets).__name__)}, want a tensor of integers")
        rows, at, padding = _distinct(input, self.table, self.padding_idx, self.weight, self._looks())
        if input.numel() == 0:
            rows = F.pad(rows, (0, 0, 0, 1))  # torch refuses bags of a table without rows
            if offsets is not None and bool(offsets.any()):  # which torch tells of, too
                raise ArgumentError("the input has no ids, and offsets are not all 0")
            if offsets is None and at.dim() == 2 and at.shape[1] == 0:  # which torch refuses, too
                offsets = torch.zeros(len(at) + self.include_last_offset, dtype=torch.int64, device=at.device)
                at, per_sample_weights = at.view(-1), None if per_sample_weights is None else per_sample_weights.reshape(-1)
        if offsets is not None:
            offsets = offsets.to(torch.int64)
        if self._dtype is torch.float64:  # bags are added in double precision, as torch's are; those of shorter types in float32
            rows = rows.double()
        if per_sample_weights is not None and per_sample_weights.dtype in (self._dtype, torch.float32):
            per_sample_weights = per_sample_weights.to(rows.dtype)
        return F.embedding_bag(
            at,
            rows,
            offsets,
            scale_grad_by_freq=self.scale_grad_by_freq,
            mode=self.mode,
            per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset,
            padding_idx=padding if padding >= 0 else None,
        ).to(self._dtype)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, mode={self.mode!r}"


def _matrix(values: torch.Tensor) -> tuple[int, int]:
    if not isinstance(values, torch.Tensor) or values.dim() != 2 or not values.is_floating_point():
        raise ArgumentError("pretrained embeddings are a matrix of floats")
    return values.shape[0], values.shape[1]


@dataclasses.dataclass
class EmbeddingBagConfig:
    """A table of an :class:`EmbeddingBagCollection`, and the features that use it, with the names of torchrec's."""

    num_embeddings: int
    embedding_dim: int
    name: str
    feature_names: list[str]
    pooling: str = "sum"
    init: Init | None = None


class _Bags(torch.nn.ModuleDict):
    """Modules by any name: a ModuleDict refuses those of its methods, such as items."""

    def add_module(self, name: str, module: Any) -> None:
        self._modules[name] = module


class EmbeddingBagCollection(torch.nn.Module):
    """Bags of several tables. Its input has jagged features by name, as torchrec's ``KeyedJaggedTensor``, or is a dict.

    Of each feature, ``input[name]`` has ``values()``, of one dimension, and ``offsets()``, one more than there are
    bags, and may have ``weights_or_none()``. A dict may have pairs ``(values, offsets)`` and triples with weights, with as many offsets
    as bags. With ``is_weighted`` all have weights, which are left alone without. ``device`` is refused, but for the CPU. The result is a dict of matrices, by feature; of torchrec's ``KeyedJaggedTensor`` it is torchrec's ``KeyedTensor``.
    """

    def __init__(self, tables: Iterable[Any], is_weighted: bool = False, device: Any = None, *, cluster: Cluster | None = None) -> None:
        super().__init__()
        _check_device(device)
        self.is_weighted = is_weighted
        self.embedding_bags = _Bags()
        self._features: list[tuple[str, str]] = []
        for t in tables:
            pooling = str(getattr(t.pooling, "value", t.pooling)).lower()
            if t.name in self.embedding_bags:
                raise ArgumentError(f"two tables are called {t.name!r}")
            init = getattr(t, "init", None)
            bound = math.sqrt(1 / t.num_embeddings)  # as in torchrec
            self.embedding_bags[t.name] = EmbeddingBag(
                t.num_embeddings, t.embedding_dim, mode=pooling, name=t.name, init=init if init is not None else uniform(-bound, bound), cluster=cluster
            )
            if isinstance(t.feature_names, str):
                raise ArgumentError(f"table {t.name!r}: feature_names={t.feature_names!r}, want a list of names")
            for f in t.feature_names:
                if any(f == other for other, _ in self._features):
                    raise ArgumentError(f"feature {f!r} is of two tables")
                self._features.append((f, t.name))

    def forward(self, features: Any) -> Any:
        """Returns the pooled rows of all features: of each a matrix ``(bags, embedding_dim)``, by its name, or a KeyedTensor."""
        out = {f: self._pool(f, self.embedding_bags[t], features[f]) for f, t in self._features}
        keyed = getattr(sys.modules.get(type(features).__module__), "KeyedTensor", None)  # torchrec's, which is not imported here
        return out if keyed is None else keyed(list(out), [x.shape[1] for x in out.values()], torch.cat(list(out.values()), 1))

    def _pool(self, feature: str, bag: Any, x: Any) -> torch.Tensor:
        if isinstance(x, (tuple, list)) and len(x) in (2, 3):
            values, offsets, weights = (*x, None)[:3]
        elif isinstance(x, (tuple, list)) or isinstance(x, torch.Tensor) and x.layout == torch.strided:
            raise TypeError(f"feature {feature!r} is a {type(x).__name__}, want (values, offsets), (values, offsets, weights) or what has values() and offsets()")
        else:
            values, offsets = x.values(), x.offsets()[:-1]
            weights = x.weights_or_none() if hasattr(x, "weights_or_none") else None
        if self.is_weighted and weights is None:
            raise ArgumentError(f"feature {feature!r} has no weights, and the collection has is_weighted=True")
        return cast(torch.Tensor, bag(values, offsets, weights if self.is_weighted else None))


def parameters(*modules: Any) -> Iterator[Weight]:
    """Yields what stands for the rows of the modules of ``godwit.nn`` in some modules, once each, for ``godwit.optim``."""
    seen = set()
    for m in modules:
        if isinstance(m, Weight):
            found: list[Any] = [m]
        elif isinstance(m, torch.nn.Module):
            found = [x.weight for x in m.modules() if isinstance(x, _Module)]
        else:
            raise TypeError(f"godwit.parameters of a {type(m).__name__}, want modules")
        for w in found:
            if id(w) not in seen:
                seen.add(id(w))
                yield w


def _norm(x: torch.Tensor, norm_type: float) -> torch.Tensor:
    """Returns the norm of a gradient. It is 0 of one without rows, of which torch computes no maximum."""
    return cast(torch.Tensor, torch.linalg.vector_norm(x, norm_type)) if x.numel() else x.new_zeros(())


def clip_grad_norm_(parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None) -> torch.Tensor:
    """``torch.nn.utils.clip_grad_norm_`` that takes the gradients of rows too, which are sparse. ``foreach`` changes nothing.

    The norm is that of this rank: gradients of rows, and those of ``godwit.dense``, are averaged over the ranks when they are pushed, and those of DistributedDataParallel
    by backward. So clip those of DistributedDataParallel by a call of their own: scaled by a norm that differs between ranks, its copies of the parameters drift apart.
    """
    if isinstance(parameters, torch.Tensor):
        parameters = [parameters]
    if isinstance(parameters, torch.nn.Module):
        raise TypeError(
            f"clip_grad_norm_ of a {type(parameters).__name__}, want parameters: [*model.parameters(), *godwit.parameters(model)], or what godwit.dense returned, and godwit.parameters(model)"
        )
    grads, norm_type = [], float(norm_type)
    for p in parameters:
        grad = p.grad
        if grad is None:
            continue
        if grad.is_sparse and not grad.is_coalesced():
            grad = p.grad = grad.coalesce()
        grads.append(grad)
    if not grads:
        return torch.tensor(0.0, device="cpu")
    norms = [_norm(g._values() if g.is_sparse else g, norm_type).cpu() for g in grads]
    total = torch.linalg.vector_norm(torch.stack(norms), norm_type)
    if error_if_nonfinite and not torch.isfinite(total):
        raise RuntimeError(f"the total norm of order {norm_type} of the gradients is {total}, so it cannot be clipped")
    scale = torch.clamp(max_norm / (total + 1e-6), max=1.0)
    for g in grads:
        (g._values() if g.is_sparse else g).mul_(scale.to(g.device))
    return cast(torch.Tensor, total)
