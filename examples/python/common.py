"""What the programs have in common: the ranks, the two ways to embed, and what a run took."""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any, Callable, Iterable, Iterator

import torch
import torch.distributed as dist

import godwit

RANK, WORLD = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


def arguments(about: str, ways: bool = True) -> argparse.ArgumentParser:
    """Returns a parser of the options that all programs have, and, with ways, of those that Run.embedding and Run.train heed."""
    p = argparse.ArgumentParser(description=about)
    p.add_argument("--epochs", type=int, default=1)
    p.add_argument("--batch", type=int, default=1024, help="examples of a step, of all ranks together")
    p.add_argument("--dim", type=int, default=16, help="floats of an embedding")
    p.add_argument("--seed", type=int, default=1)
    if not ways:
        return p
    p.add_argument("--torch", action="store_true", help="torch's own embeddings with sparse gradients, in place of Godwit's")
    p.add_argument("--unannounced", action="store_true", help="do not announce batches")
    p.add_argument("--frozen", action="store_true", help="do not train the embeddings, to see what they are worth")
    return p


class Run:
    """A rank of a run: its cluster, its clock, and what its embeddings are made of."""

    def __init__(self, args: argparse.Namespace, plain: bool = False) -> None:
        self.args = args
        if args.batch < WORLD:
            raise ValueError(f"--batch {args.batch}: want an example at least for each of {WORLD} ranks")
        torch.manual_seed(args.seed)
        if WORLD > 1 and not dist.is_initialized():
            dist.init_process_group("gloo")
        self.cluster = None if plain or getattr(args, "torch", False) else godwit.init(seed=args.seed)

    def embedding(self, rows: int, dim: int, std: float) -> Any:
        """Returns an embedding whose rows begin as normal(0, std)."""
        if self.cluster is not None:
            e: Any = godwit.nn.Embedding(rows, dim, init=godwit.normal(0, std))
        else:
            e = torch.nn.Embedding(rows, dim, sparse=True)
            torch.nn.init.normal_(e.weight, 0, std, generator=torch.Generator().manual_seed(self.args.seed))
        e.weight.requires_grad_(not self.args.frozen)
        return e

    def optimizers(self, model: torch.nn.Module, lr: float, rows_lr: float) -> list[torch.optim.Optimizer]:
        """Returns Adam of the dense parameters, and Adagrad of the embeddings."""
        if self.cluster is not None:
            dense, rows, adagrad = list(model.parameters()), list(godwit.parameters(model)), godwit.optim.Adagrad
        else:
            rows = [e.weight for e in model.modules() if isinstance(e, torch.nn.Embedding)]
            dense, adagrad = [p for p in model.parameters() if all(p is not r for r in rows)], torch.optim.Adagrad
        return [torch.optim.Adam(dense, lr=lr), adagrad(rows, lr=rows_lr, initial_accumulator_value=0.01)]

    def train(self, model: Any, optimizers: Any, loader: Any, loss: Callable[..., torch.Tensor], keys: Callable[[Any], Any]) -> Took:
        """Trains some epochs, and returns what that took."""
        parallel = torch.nn.parallel.DistributedDataParallel(model) if WORLD > 1 else model
        announced = self.cluster is not None and not self.args.unannounced
        batches = godwit.lookahead(loader, keys=keys) if announced else loader
        with Took(self) as took:
            for _ in range(self.args.epochs):
                for batch in took.count(batches):
                    for o in optimizers:
                        o.zero_grad()
                    loss(parallel, *batch).backward()
                    for o in optimizers:
                        o.step()
        return took

    def meet(self) -> None:
        """Returns when all ranks have come here, and everybody sees what each has pushed."""
        if self.cluster is not None:
            self.cluster.worker.sync_all()
        elif WORLD > 1:
            dist.barrier()

    def end(self, took: Took, **results: Any) -> None:
        """Prints results and what training took, of all ranks together, as one line of JSON."""
        if RANK == 0:
            print(json.dumps({**results, **took.results}), flush=True)
        self.meet()
        if self.cluster is not None:
            self.cluster.close()


class Took:
    """What training took, between entering it and leaving it."""

    def __init__(self, run: Run) -> None:
        self.run, self.results = run, {}
        self.steps, self.examples = 0, 0

    def count(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yields batches, whose first part has an element for each example, and counts both."""
        for batch in batches:
            yield batch
            self.steps, self.examples = self.steps + 1, self.examples + len(batch[0])

    def __enter__(self) -> Took:
        if self.run.cluster is not None:
            self.run.cluster.start()
        self.run.meet()
        self.began = self._now()
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is not None:
            return
        if self.steps == 0 and self.run.args.epochs > 0:
            raise ValueError(f"no step was trained: there are less than the {self.run.args.batch} examples of a batch: choose a smaller --batch")
        now = self._now()
        self.run.meet()
        now.update(self._rows())
        all = gather({"examples": self.examples, **{k: now[k] - x for k, x in self.began.items()}})
        sum_of = {k: sum(a[k] for a in all) for k in all[0]}
        seconds = max(a["seconds"] for a in all)
        self.results = {
            "ranks": WORLD,
            "steps": self.steps,
            "seconds": round(seconds, 3),
            "ms_a_step": round(1e3 * seconds / max(self.steps, 1), 3),
            "cpu_us_an_example": round(1e6 * sum_of["cpu"] / max(sum_of["examples"], 1), 1),
        }
        if "local" in sum_of:
            here, waited = (sum(sum_of[k] for k in which) for which in (("local", "replica", "ahead"), ("queued", "remote")))
            self.results["without_message"] = round(100 * here / max(here + waited, 1), 3)  # percent of accesses
            self.results["sent_mb"] = round(sum_of["sent_bytes"] / 1e6, 1)

    def _now(self) -> dict[str, float]:
        return {"seconds": time.perf_counter(), "cpu": time.process_time(), **self._rows()}

    def _rows(self) -> dict[str, float]:
        if self.run.cluster is None:
            return {}
        stats = self.run.cluster.stats()
        return {k: stats[k] for k in ("local", "replica", "ahead", "queued", "remote", "sent_bytes")}


def gather(x: Any) -> list[Any]:
    """Returns x of all ranks."""
    if WORLD == 1:
        return [x]
    all = [None] * WORLD
    dist.all_gather_object(all, x)
    return all


def concatenated(parts: Iterable[torch.Tensor]) -> torch.Tensor:
    """Returns the rows of all ranks' parts."""
    return torch.cat([torch.as_tensor(x) for x in gather(torch.cat(list(parts)).numpy())])


def auc(scores: torch.Tensor, labels: torch.Tensor) -> float:
    """Returns the area under the ROC curve: how often a positive example is above a negative one; ties count half."""
    _, at, count = scores.unique(return_inverse=True, return_counts=True)
    rank = (count.cumsum(0) - (count - 1) / 2)[at]  # the mean one among equals, from 1
    positive = labels > 0.5
    p, n = int(positive.sum()), int((~positive).sum())
    if p == 0 or n == 0:
        raise ValueError(f"AUC of {p} positive and {n} negative examples: both are needed")
    return ((rank[positive].double().sum() - p * (p + 1) / 2) / (p * n)).item()
