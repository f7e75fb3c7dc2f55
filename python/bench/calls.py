"""Ratios of what steps cost: Godwit beside torch; and what an empty call costs.

    taskset -c 0 env GOMAXPROCS=1 OMP_NUM_THREADS=1 python python/bench/calls.py [seeds]

Both sides have one core and one thread. Ratios are of medians of processor time; the
cases alternate, and each step has keys that no step had before.
"""

import statistics
import sys
import time

import numpy as np

import godwit

ROWS, DIM = 1_000_000, 64
ROUNDS, WARM = 30, 3


def alternate(cases, rounds):
    """Returns the median processor time of each case in seconds, taken in turns."""
    taken = {name: [] for name in cases}
    for i in range(rounds + WARM):
        for name, f in cases.items():
            begin = time.process_time()
            f(i)
            if i >= WARM:
                taken[name].append(time.process_time() - begin)
    return {name: statistics.median(t) for name, t in taken.items()}


def calls(cluster):
    lib, w = cluster._library, cluster.worker
    t = cluster.table("small", 1, 1)
    w.pull(t, [0])
    id = t._group.workers[0]

    def many(f, n=20000):
        def run(_):
            for _ in range(n):
                f()

        return run

    took = alternate({"empty": many(lambda: lib.clock(id)), "python": many(lambda: None)}, 7)
    print(f"an empty call: {(took['empty'] - took['python']) / 20000 * 1e6:.2f} µs")


def steps(seed, n):
    import torch

    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    perm = rng.permutation(ROWS)

    ids = [torch.from_numpy(perm[(rng.zipf(1.15, n) - 1) % ROWS]) for _ in range(ROUNDS + WARM)]
    init = torch.randn(ROWS, DIM)
    cases, shares = {}, {}
    with godwit.Cluster(seed=seed) as c:
        for name, ours, theirs in (
            ("SGD", godwit.optim.SGD, torch.optim.SGD),
            ("Adagrad", godwit.optim.Adagrad, torch.optim.Adagrad),
            ("SparseAdam", godwit.optim.SparseAdam, torch.optim.SparseAdam),
        ):
            a = godwit.nn.Embedding.from_pretrained(init, freeze=False, cluster=c, name=name)
            b = torch.nn.Embedding.from_pretrained(init.clone(), freeze=False, sparse=True)
            for who, m, opt in (("godwit", a, ours(a, lr=0.01)), ("torch", b, theirs(b.parameters(), lr=0.01))):
                cases[who, name] = _step(m, opt, ids)
        took = alternate(cases, ROUNDS)
    for who, name in took:
        if who == "godwit":
            shares[name] = took["godwit", name] / took["torch", name]
    print(f"seed {seed}, {n} Zipf keys, forward + backward + step, beside torch: " + ", ".join(f"{k} {v:.2f}" for k, v in shares.items()))


def _step(module, opt, ids):
    def step(i):
        opt.zero_grad()
        module(ids[i]).sum().backward()
        opt.step()

    return step


if __name__ == "__main__":
    with godwit.Cluster() as cluster:
        calls(cluster)
    for seed in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
        steps(seed, 10_000)
