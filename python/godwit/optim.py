"""Optimizers of rows, with the names, arguments and defaults of ``torch.optim``.

They are ``torch.optim.Optimizer`` and take what :func:`godwit.parameters` yields. ``step`` pushes the gradient of each
table once, with the rate of its group, and the table's nodes apply the rule. So schedulers work. Arguments that the rules do not know are
refused. The rule of a table is that of its optimizer, so make the optimizer before the first forward.

Only rows with a gradient change in a step, as with torch's sparse gradients.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, Callable

import torch

from . import _state
from .errors import ArgumentError
from .nn import Weight, parameters

__all__ = ["SGD", "Adagrad", "RowWiseAdagrad", "SparseAdam", "Adam"]


class Optimizer(torch.optim.Optimizer):
    """What the optimizers of rows have in common."""

    average = True
    """Whether gradients are averaged over the processes of a run, as DistributedDataParallel does; else they are summed."""

    _torch: dict[str, Any] = {}  # what groups of the optimizer of torch have beside, as it is there by default

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self._taken: list[tuple[Any, str]] = []  # tables, and their rules before
        self._needs = [name for name in defaults if name != "maximize"]  # of a state: states of older versions of torch have no maximize
        weights = _weights(params)
        if not weights:
            raise ArgumentError("no rows are given to the optimizer, want godwit.parameters(model) of a model with modules of godwit.nn: model.parameters() has none")
        try:
            super().__init__(weights, defaults)
        except BaseException:
            for table, rule in self._taken:  # another optimizer may have them
                table.rule = rule
                del table.__dict__["_optimizer"]
            raise

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        weights = _weights(param_group["params"])
        for p in weights:
            p.__dict__["_joining"] = True  # an optimizer of torch is refused
        try:
            super().add_param_group({**param_group, "params": weights})
        finally:
            for p in weights:
                del p.__dict__["_joining"]
        group = self.param_groups[-1]
        try:
            self._check(group)
            rule = self._rule(group)
            for p in group["params"]:
                owner = p.table.__dict__.get("_optimizer")
                if owner is not None:
                    raise ArgumentError(f"table {p.table.name!r} has an optimizer already: {owner}")
                p.table.begin()  # which raises if it was accessed, before another table is changed
            for p in group["params"]:
                self._taken.append((p.table, p.table.rule))
                p.table.begin(rule=rule)
                p.table.__dict__["_optimizer"] = type(self).__name__
        except BaseException:
            self.param_groups.pop()
            raise

    def _check(self, group: dict[str, Any]) -> None:
        if not 0 <= float(group["lr"]) < math.inf:
            raise ValueError(f"Invalid learning rate: {group['lr']}")

    def _rule(self, group: dict[str, Any]) -> str:
        raise NotImplementedError

    def _rate(self, group: dict[str, Any], step: int) -> float:
        return float(group["lr"])

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Pushes the gradients. With a closure, calls it first and returns what it returns."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        pushed = []
        for p, group in self._ordered():
            rule = self._rule(group)
            if p.table.rule != rule:
                raise ArgumentError(
                    f"the rule of table {p.table.name!r} is {p.table.rule}, and cannot become {rule}: only the rate can change. Schedulers that change betas, "
                    "as OneCycleLR and CyclicLR do, take cycle_momentum=False"
                )
            grad = p.grad
            if grad is not None:
                self._push(p, group, grad)
                pushed.append(p)
        for p in pushed:
            p.spread()
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients, or has them be zero."""
        if not set_to_none:
            super().zero_grad(False)
        for p, _ in self._ordered():
            p.__dict__.pop("_pushed", None)
            p.clear(set_to_none)

    def _push(self, p: Any, group: dict[str, Any], grad: Any) -> None:
        state = self.state[p]
        if not grad.is_sparse:
            raise ArgumentError(f"the gradient of table {p.table.name!r} is dense, want the sparse one that backward made")
        if p.__dict__.get("_pushed") is grad:
            _warn(
                f"the gradient of table {p.table.name!r} is pushed a second time, with what was added since: "
                "call zero_grad() of its optimizer before backward, as model.zero_grad() does not reach rows"
            )
        state["step"] = state.get("step", 0) + 1
        rate = self._rate(group, state["step"])
        values = grad._values()
        if values.dtype is not torch.float32 or not values.is_contiguous():
            values = values.to(torch.float32).contiguous()
        scale = (-1.0 if group.get("maximize") else 1.0) / (p.table.cluster.world if self.average else 1)
        ids = grad._indices()[0]
        p.table.cluster.worker._push_later(p.table, ids, values, rate, scale, not p.distinct(ids))
        p.__dict__["_pushed"] = grad

    def _kept(self, dim: int) -> dict[str, int]:
        """Returns what the rule keeps of a row: names, and how many floats each, in their order."""
        return {}

    def _first(self, group: dict[str, Any]) -> float:
        """Returns what the floats that the rule keeps are at first."""
        return 0.0

    def _count(self, step: int) -> Any:
        """Returns a number of steps as torch's optimizer has it."""
        return step

    def _ordered(self) -> list[tuple[Any, dict[str, Any]]]:
        """Returns the tables in the order in which a state numbers them, with their groups."""
        return [(p, group) for group in self.param_groups for p in group["params"]]

    def state_dict(self) -> dict[str, Any]:
        """Returns rates, numbers of steps, and what the rules keep of all rows: torch's optimizer of the same name loads it.

        It is not collective: one rank may call it. Tables of which more is kept than a state_dict holds are refused, see
        ``godwit.without_rows``.
        """
        state = super().state_dict()
        state["param_groups"] = [{**self._torch, **group} for group in state["param_groups"]]
        state["state"] = {}
        for i, (p, _) in enumerate(self._ordered()):
            kept = self._kept(p.table.dim)
            if kept:
                state["state"][i] = {"step": self._count(self.state[p].get("step", 0))}
                if _state.with_rows():
                    state["state"][i].update(_read(p.table, kept))
        return state

    def load_state_dict(self, state_dict: Any) -> None:
        """Loads the state of an optimizer of the same kind, or of torch's of the same name. All ranks load the same, or rank 0 alone."""
        groups = state_dict["param_groups"]
        for group in groups:
            for name, value in self._torch.items():
                if not value and group.get(name):
                    raise ArgumentError(f"{type(self).__name__}: the state has {name}={group[name]!r}, which is not supported for rows of a cluster")
            lacks = [name for name in self._needs if name not in group]
            if lacks:
                raise ArgumentError(f"{type(self).__name__}: the state has no {lacks[0]}, so it is that of an optimizer of another kind: load it into one of that kind")
        numbers = [i for group in groups for i in group["params"]]
        rows = state_dict["state"]
        for i, (p, _) in zip(numbers, self._ordered()):
            size = 4 * p.table.rows * sum(self._kept(p.table.dim).values())
            if i not in rows and p.table.started and size > _state.MAX_STATE:
                raise ArgumentError(
                    f"table {p.table.name!r}: the state has nothing of its rows, so that what the rule keeps of them would begin anew: {size >> 20} MiB would be written, "
                    f"and at most {_state.MAX_STATE >> 20} are. Load the state before the first forward, or one that was made within godwit.without_rows(), which leaves rows as they are"
                )
        steps = {i: {"step": int(x["step"])} for i, x in rows.items() if "step" in x}
        super().load_state_dict({"state": steps, "param_groups": [{k: v for k, v in g.items() if k not in self._torch} for g in groups]})
        for i, (p, group) in zip(numbers, self._ordered()):
            rule = self._rule(group)
            if p.table.rule != rule:
                p.table.begin(rule=rule)
            kept = self._kept(p.table.dim)
            if kept:
                self._write(p.table, kept, rows.get(i), self._first(group))

    def _write(self, table: Any, kept: dict[str, int], state: Any, first: float) -> None:
        """Writes what a state has of the rows of a table: without a state they are as at first, and one that lacks the rows leaves them alone."""
        parts: list[Any] = []
        lacks = [name for name in kept if state is not None and state.get(name) is None]
        if lacks and len(lacks) < len(kept):
            raise ArgumentError(f"table {table.name!r}: the state has no {lacks[0]}")
        for name, n in kept.items():
            value = torch.full((), first, dtype=torch.float32, device="cpu").expand(table.rows, n) if state is None else state.get(name)
            if value is None:
                continue
            if value.numel() != table.rows * n:
                raise ArgumentError(f"table {table.name!r}: {name} has the shape {tuple(value.shape)}, want {(table.rows, n)}")
            copy = state is not None and not table.started  # what is written later does not follow the caller's
            parts.append(value.detach().to("cpu", torch.float32, copy=copy).reshape(table.rows, n))
        if not parts or state is None and not table.started:
            return

        def write(w: Any) -> None:
            _state.in_parts(table.rows, lambda rows, begin, end: w.set_state(table, rows, torch.cat([x[begin:end] for x in parts], 1).contiguous()))

        if table.started:
            write(table.cluster.worker)
        else:
            table.begin(prepare=write)


def _read(table: Any, kept: dict[str, int]) -> dict[str, torch.Tensor]:
    """Returns what the rule of a table keeps of its rows, by names."""
    _state.check_size(table, sum(kept.values()), "what its rule keeps")
    out = {name: torch.empty(table.rows, n, dtype=torch.float32, device="cpu") for name, n in kept.items()}

    def read(rows: Any, begin: int, end: int) -> None:
        state = table.cluster.worker.state(table, rows)
        for x, part in zip(out.values(), state.split(list(kept.values()), 1)):
            x[begin:end] = part

    _state.in_parts(table.rows, read)
    return out


def _text(x: Any) -> str:
    """Returns a number as a rule has it, also one of numpy or of a tensor."""
    return repr(x if type(x) in (int, float) else float(x))


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=3)


def _weights(params: Any) -> Any:
    """Makes a list of parameters, or of groups of them, of what an optimizer is given."""
    if isinstance(params, (Weight, torch.nn.Module)):
        params = [params]
    if isinstance(params, torch.Tensor):
        raise TypeError("params are a tensor, want godwit.parameters(model)")
    params = list(params)
    if params and isinstance(params[0], dict):
        return params
    for p in params:
        if not isinstance(p, (Weight, torch.nn.Module)):
            raise TypeError(f"a parameter is a {type(p).__name__}: this optimizer is for rows, godwit.parameters(model); give model.parameters() to one of torch.optim")
    return list(parameters(*params))


def _refuse(optimizer: str, **arguments: Any) -> None:
    for name, value in arguments.items():
        if value:
            raise ArgumentError(f"{optimizer}: {name}={value!r} is not supported for rows of a cluster")


class SGD(Optimizer):
    """``torch.optim.SGD`` without momentum and weight decay."""

    _torch = {"momentum": 0, "dampening": 0, "weight_decay": 0, "nesterov": False, "foreach": None, "differentiable": False, "fused": None}

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        _refuse("SGD", momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov, foreach=foreach, differentiable=differentiable, fused=fused)
        super().__init__(params, {"lr": lr, "maximize": maximize})

    def _rule(self, group: dict[str, Any]) -> str:
        return "ratedsgd"


class Adagrad(Optimizer):
    """``torch.optim.Adagrad`` without weight decay, which torch refuses for sparse gradients too."""

    _name = "ratedadagrad"
    _torch = {"weight_decay": 0, "foreach": None, "differentiable": False, "fused": None}

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        _refuse(type(self).__name__, weight_decay=weight_decay, foreach=foreach, differentiable=differentiable, fused=fused)
        defaults = {"lr": lr, "lr_decay": lr_decay, "initial_accumulator_value": initial_accumulator_value, "eps": eps, "maximize": maximize}
        super().__init__(params, defaults)

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        for name, low in (("lr_decay", 0.0), ("initial_accumulator_value", 0.0), ("eps", 0.0)):
            if not low <= group[name] < math.inf:
                raise ValueError(f"Invalid {name} value: {group[name]}")
        if group["eps"] == 0:
            raise ArgumentError(f"{type(self).__name__}: eps=0 is not supported: a coordinate whose gradients were 0 would be divided by it")

    def _rule(self, group: dict[str, Any]) -> str:
        return f"{self._name}(eps={_text(group['eps'])},init={_text(group['initial_accumulator_value'])})"

    def _rate(self, group: dict[str, Any], step: int) -> float:
        return float(group["lr"]) / (1 + (step - 1) * float(group["lr_decay"]))

    def _kept(self, dim: int) -> dict[str, int]:
        return {"sum": dim}

    def _first(self, group: dict[str, Any]) -> float:
        return float(group["initial_accumulator_value"])

    def _count(self, step: int) -> Any:
        return torch.tensor(float(step), device="cpu")


class RowWiseAdagrad(Adagrad):
    """Adagrad with one accumulator a row, of the mean of the squared gradients, as in fbgemm and torchrec."""

    _name = "ratedrowadagrad"

    def _kept(self, dim: int) -> dict[str, int]:
        return {"sum": 1}


class SparseAdam(Optimizer):
    """``torch.optim.SparseAdam``: the steps of a table are counted, and only rows with a gradient change."""

    def __init__(self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, maximize: bool = False) -> None:
        super().__init__(params, {"lr": lr, "betas": tuple(betas), "eps": eps, "maximize": maximize})

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        if not 0 < group["eps"] < math.inf:
            raise ValueError(f"Invalid epsilon value: {group['eps']}")
        for i, b in enumerate(group["betas"]):
            if not 0 < b < 1:
                raise ValueError(f"Invalid beta parameter at index {i}: {b}")

    def _rule(self, group: dict[str, Any]) -> str:
        b1, b2 = group["betas"]
        return f"sparseadam(b1={_text(b1)},b2={_text(b2)},eps={_text(group['eps'])})"

    def _rate(self, group: dict[str, Any], step: int) -> float:
        b1, b2 = map(float, group["betas"])
        return float(group["lr"]) * math.sqrt(1 - b2**step) / (1 - b1**step)

    def _kept(self, dim: int) -> dict[str, int]:
        return {"exp_avg": dim, "exp_avg_sq": dim}


class Adam(SparseAdam):
    """Adam of the rows with a gradient. Each row counts its own steps, so a rare row is corrected for its start when it comes.

    ``torch.optim.Adam`` differs: it also moves rows without a gradient by what they have accumulated.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        _refuse("Adam", weight_decay=weight_decay, amsgrad=amsgrad, foreach=foreach, capturable=capturable, differentiable=differentiable, fused=fused)
        super().__init__(params, lr, betas, eps, maximize)

    def _rule(self, group: dict[str, Any]) -> str:
        b1, b2 = group["betas"]
        return f"ratedadam(b1={_text(b1)},b2={_text(b2)},eps={_text(group['eps'])})"

    def _rate(self, group: dict[str, Any], step: int) -> float:
        return float(group["lr"])

    def _kept(self, dim: int) -> dict[str, int]:
        return {**super()._kept(dim), "row_steps": 1}
