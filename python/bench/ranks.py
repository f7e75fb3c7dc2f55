"""What a step of several ranks costs: Godwit beside torch's DistributedDataParallel with sparse gradients.

    env OMP_NUM_THREADS=1 torchrun --nproc-per-node=4 python/bench/ranks.py [--torch] [--unannounced] …

Each rank takes, in each step, the rows of so many Zipf keys, new ones each time; forward, backward and step are all that it does. Rank 0
prints, as one line of JSON, milliseconds and milliseconds of processor time of a step, of all ranks together, and what accesses needed.
"""

import argparse
import json
import os
import time

import numpy as np
import torch
import torch.distributed as dist

import godwit

RANK, WORLD = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


COUNTED = ("local", "replica", "ahead", "queued", "remote", "fetched", "moves", "copies", "deltas", "refreshes", "rounds", "frames", "waited_ns", "sent_bytes")


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--torch", action="store_true")
    p.add_argument("--unannounced", action="store_true")
    p.add_argument("--policy", default="")
    p.add_argument("--optimizer", default="Adagrad")
    p.add_argument("--rows", type=int, default=1_000_000)
    p.add_argument("--dim", type=int, default=64)
    p.add_argument("--keys", type=int, default=10_000, help="of a rank and step")
    p.add_argument("--zipf", type=float, default=1.15)
    p.add_argument("--hidden", type=int, default=0, help="units of a dense layer after the rows; 0: none")
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--warm", type=int, default=10)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--listen", default="", help="where ranks listen, in their order, by commas; delayed.py gives these")
    p.add_argument("--advertise", default="", help="… and by what addresses they are told to others")
    return p.parse_args()


def batches(args):
    perm = np.random.default_rng(args.seed).permutation(args.rows)
    rng = np.random.default_rng((args.seed, RANK))
    return [torch.from_numpy(perm[(rng.zipf(args.zipf, args.keys) - 1) % args.rows]) for _ in range(args.steps + args.warm)]


def main():
    args = arguments()
    torch.manual_seed(args.seed)
    if WORLD > 1:
        dist.init_process_group("gloo")
    ids = batches(args)
    if args.torch:
        module = torch.nn.Embedding(args.rows, args.dim, sparse=True)
        optimizer = getattr(torch.optim, args.optimizer)(module.parameters(), lr=0.01)
        model = torch.nn.parallel.DistributedDataParallel(module) if WORLD > 1 else module
    else:
        for name, given in (("GODWIT_LISTEN", args.listen), ("GODWIT_ADVERTISE", args.advertise)):
            if given:
                os.environ[name] = given.split(",")[RANK]
        cluster = godwit.init(seed=args.seed, policy=args.policy)
        model = module = godwit.nn.Embedding.from_pretrained(torch.zeros(args.rows, args.dim), freeze=False)  # all rows exist, as torch's do
        optimizer = getattr(godwit.optim, args.optimizer)(godwit.parameters(model), lr=0.01)
    top = torch.nn.Sequential(torch.nn.Linear(args.dim, args.hidden), torch.nn.ReLU(), torch.nn.Linear(args.hidden, 1)) if args.hidden else torch.nn.Identity()
    loader = ids if args.torch or args.unannounced else godwit.lookahead(ids, keys=lambda b: {module: b})
    for i, batch in enumerate(loader):
        if i == args.warm:
            meet()
            began = now(args)
        optimizer.zero_grad()
        top(model(batch)).sum().backward()
        optimizer.step()
    ended = now(args)
    meet()
    took = gather({k: ended[k] - x for k, x in began.items()})
    if RANK == 0:
        print(json.dumps(results(args, took)), flush=True)
    if not args.torch:
        cluster.worker.barrier()
        cluster.close()


def meet():
    if WORLD > 1:
        dist.barrier()


def now(args):
    stats = {} if args.torch else godwit.cluster().stats()
    return {"seconds": time.perf_counter(), "cpu": time.process_time(), **{k: stats[k] for k in COUNTED if k in stats}}


def gather(x):
    if WORLD == 1:
        return [x]
    all = [None] * WORLD
    dist.all_gather_object(all, x)
    return all


def results(args, took):
    total = {k: sum(t[k] for t in took) for k in took[0]}
    out = {
        "ranks": WORLD,
        "ms_a_step": round(1e3 * max(t["seconds"] for t in took) / args.steps, 2),
        "cpu_ms_a_step": round(1e3 * total["cpu"] / args.steps / WORLD, 2),
    }
    if "local" in total:
        here, away = (sum(total[k] for k in names) for names in (("local", "replica", "ahead"), ("queued", "remote")))
        out["without_message"] = round(100 * here / max(here + away, 1), 2)
        # A step reads each row that it changes once. What was fetched ahead is read without a message, and changed by one that nobody waits for.
        reads = (here + away) / 2
        out["reads_without_message"] = round(100 * min(1, ((total["local"] + total["replica"]) / 2 + total["ahead"]) / max(reads, 1)), 2)
        out["waited_ms_a_step"] = round(total["waited_ns"] / 1e6 / args.steps / WORLD, 2)
        out["sent_kb_a_step"] = round(total["sent_bytes"] / 1e3 / args.steps / WORLD, 1)
        out["accesses_a_step"] = round((here + away) / args.steps / WORLD)
        out.update({k: round(total[k] / args.steps / WORLD, 1) for k in COUNTED[:-2]})
    return out


if __name__ == "__main__":
    main()
