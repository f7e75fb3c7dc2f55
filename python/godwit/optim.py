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

from .errors import ArgumentError
from .nn import Weight, parameters

__all__ = ["SGD", "Adagrad", "RowWiseAdagrad", "SparseAdam", "Adam"]


class Optimizer(torch.optim.Optimizer):
    """What the optimizers of rows have in common."""

    average = True
    """Whether gradients are averaged over the processes of a run, as DistributedDataParallel does; else they are summed."""

    _has_state = True  # the rule keeps more than the values

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        super().__init__(_weights(params), defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        group = {**param_group, "params": _weights(param_group["params"])}
        super().add_param_group(group)
        group = self.param_groups[-1]
        try:
            self._check(group)
            rule = self._rule(group)
            for p in group["params"]:
                owner = p.table.__dict__.get("_optimizer")
                if owner is not None:
                    raise ArgumentError(f"table {p.table.name!r} has an optimizer already, a {owner}")
            for p in group["params"]:
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
        for group in self.param_groups:
            rule = self._rule(group)
            for p in group["params"]:
                if p.table.rule != rule:
                    raise ArgumentError(f"the rule of table {p.table.name!r} is {p.table.rule}, and cannot become {rule}: only the rate can change")
                if p.grad is not None:
                    self._push(p, group)
        return loss

    def _push(self, p: Any, group: dict[str, Any]) -> None:
        state, grad = self.state[p], p.grad
        if not grad.is_sparse:
            raise ArgumentError(f"the gradient of table {p.table.name!r} is dense, want the sparse one that backward made")
        if p.__dict__.get("_pushed") is grad:
            _warn(
                f"the gradient of table {p.table.name!r} is pushed a second time, with what was added since: "
                "call zero_grad() of its optimizer before backward, as model.zero_grad() does not reach rows"
            )
        state["step"] = state.get("step", 0) + 1
        rate = self._rate(group, state["step"])
        values = grad._values().to(torch.float32)
        scale = (-1.0 if group.get("maximize") else 1.0) / (p.table.cluster.world if self.average else 1)
        if scale != 1:
            values = values * scale
        p.table.cluster.worker.push(p.table, grad._indices()[0], values.contiguous(), rate=rate, sum=True, finite=True)
        p.__dict__["_pushed"] = grad

    def load_state_dict(self, state_dict: Any) -> None:
        super().load_state_dict(state_dict)
        if self._has_state:
            _warn(f"{type(self).__name__}.load_state_dict restores rates and numbers of steps. What the rule keeps of each row is as it is")


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

    _has_state = False

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
        return f"{self._name}(eps={group['eps']!r},init={group['initial_accumulator_value']!r})"

    def _rate(self, group: dict[str, Any], step: int) -> float:
        return float(group["lr"]) / (1 + (step - 1) * group["lr_decay"])


class RowWiseAdagrad(Adagrad):
    """Adagrad with one accumulator a row, of the mean of the squared gradients, as in fbgemm and torchrec."""

    _name = "ratedrowadagrad"


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
        return f"sparseadam(b1={b1!r},b2={b2!r},eps={group['eps']!r})"

    def _rate(self, group: dict[str, Any], step: int) -> float:
        b1, b2 = group["betas"]
        return float(group["lr"]) * math.sqrt(1 - b2**step) / (1 - b1**step)


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
        return f"ratedadam(b1={b1!r},b2={b2!r},eps={group['eps']!r})"

    def _rate(self, group: dict[str, Any], step: int) -> float:
        return float(group["lr"])
