"""What steps cost beside those of fbgemm's table-batched embedding on the CPU, which updates rows in backward.

    taskset -c 0 env GOMAXPROCS=1 OMP_NUM_THREADS=1 python python/bench/fbgemm.py [seeds]

Needs the package fbgemm-gpu-cpu, and the torch that it was built for. Both sides have one core and one thread; cases alternate, keys are new in each step, and figures
are medians of processor time.
"""

import sys

import numpy as np
import torch
from calls import DIM, ROUNDS, ROWS, WARM, alternate
from fbgemm_gpu.split_embedding_configs import EmbOptimType
from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation, PoolingMode
from fbgemm_gpu.split_table_batched_embeddings_ops_training import ComputeDevice, SplitTableBatchedEmbeddingBagsCodegen

import godwit

KEYS = 10_000
RULES = (
    ("SGD", EmbOptimType.EXACT_SGD, godwit.optim.SGD),
    ("Adagrad", EmbOptimType.EXACT_ADAGRAD, godwit.optim.Adagrad),
    ("RowWiseAdagrad", EmbOptimType.EXACT_ROWWISE_ADAGRAD, godwit.optim.RowWiseAdagrad),
)


def steps(seed):
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    perm = rng.permutation(ROWS)
    ids = [torch.from_numpy(perm[(rng.zipf(1.15, KEYS) - 1) % ROWS]) for _ in range(ROUNDS + WARM)]
    offsets = torch.arange(KEYS + 1)
    init = torch.randn(ROWS, DIM)
    cases = {}
    with godwit.Cluster(seed=seed) as c:
        for name, theirs, ours in RULES:
            module = godwit.nn.Embedding.from_pretrained(init, freeze=False, cluster=c, name=name)
            cases["godwit", name] = _ours(module, ours(module, lr=0.01), ids)
            other = SplitTableBatchedEmbeddingBagsCodegen(
                [(ROWS, DIM, EmbeddingLocation.HOST, ComputeDevice.CPU)], optimizer=theirs, learning_rate=0.01, pooling_mode=PoolingMode.SUM
            )
            other.split_embedding_weights()[0].data.copy_(init)
            cases["fbgemm", name] = _theirs(other, ids, offsets)
        took = alternate(cases, ROUNDS)
    names = [name for name, _, _ in RULES]
    print(f"seed {seed}, {KEYS} Zipf keys, forward + backward + step, beside fbgemm: " + ", ".join(f"{n} {took['godwit', n] / took['fbgemm', n]:.2f}" for n in names))


def _ours(module, optimizer, ids):
    def step(i):
        optimizer.zero_grad()
        module(ids[i]).sum().backward()
        optimizer.step()

    return step


def _theirs(module, ids, offsets):
    def step(i):
        module(ids[i], offsets).sum().backward()

    return step


if __name__ == "__main__":
    for seed in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
        steps(seed)
