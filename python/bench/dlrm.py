"""What a step of examples/python/ctr.py takes with Godwit's embeddings, with torch's, and without any: what is left is the dense part, which is torch's.

    env OMP_NUM_THREADS=1 python python/bench/dlrm.py [--rounds 3] [--steps 60]

The batches, of 1,024 × 26 rows out of 346,000, are made before. Prints, for each in turns, milliseconds of processor time of a step: in all, and of forward,
backward, and the optimizers.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "python"))

import ctr  # noqa: E402
import godwit  # noqa: E402

ROWS, DIM, BATCH, WARM = 346_000, 16, 1024, 5


class Constant(torch.nn.Module):
    """Stands for an embedding that costs nothing. Its output takes a gradient."""

    def __init__(self, fields):
        super().__init__()
        self.x = torch.full((BATCH, fields, DIM), 0.05).requires_grad_(True)

    def forward(self, rows):
        self.x.grad = None
        return self.x


def measure(which, batches):
    """Returns what forward, backward and the optimizers take, and all of a step."""
    torch.manual_seed(1)
    values, optimizers = torch.randn(ROWS, DIM) * 0.05, []
    if which == "torch":
        rows = torch.nn.Embedding.from_pretrained(values, freeze=False, sparse=True)
        optimizers = [torch.optim.Adagrad(rows.parameters(), lr=0.05)]
    elif which == "godwit":
        rows = godwit.nn.Embedding.from_pretrained(values, freeze=False)
        optimizers = [godwit.optim.Adagrad(godwit.parameters(rows), lr=0.05)]
    else:
        rows = Constant(ctr.CATEGORIES)
    model = ctr.DLRM(rows, ctr.NUMBERS, ctr.CATEGORIES, DIM)
    optimizers.append(torch.optim.Adam([p for name, p in model.named_parameters() if not name.startswith("rows.")], lr=0.002))
    loader = godwit.lookahead(batches, keys=lambda b: {rows: b[2]}) if which == "godwit" else batches
    took, began = [0.0] * 3, 0.0
    for i, batch in enumerate(loader):
        if i == WARM:
            took, began = [0.0] * 3, time.process_time()
        at = [time.process_time()]
        for o in optimizers:
            o.zero_grad()
        loss = ctr.loss(model, *batch)
        at.append(time.process_time())
        loss.backward()
        at.append(time.process_time())
        for o in optimizers:
            o.step()
        at.append(time.process_time())
        took = [x + b - a for x, a, b in zip(took, at, at[1:])]
    all = time.process_time() - began
    return [1e3 * x / (len(batches) - WARM) for x in (all, *took)]


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=60)
    args = p.parse_args()
    generated = ctr.Generated(argparse.Namespace(rows=ROWS, seed=1, batch=BATCH, examples=BATCH))
    batches = [generated.part(i * BATCH, BATCH) for i in range(args.steps + WARM)]
    for _ in range(args.rounds):
        for which in ("torch", "godwit", "neither"):
            all, forward, backward, step = measure(which, batches)
            print(f"{which:8} {all:6.2f} ms a step: forward {forward:.2f}, backward {backward:.2f}, optimizers {step:.2f}, load {os.getloadavg()[0]:.1f}", flush=True)
            if which == "godwit":
                godwit.cluster().close()


if __name__ == "__main__":
    main()
