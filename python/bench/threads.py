"""Whether the default numbers of threads are good: steps of one rank by the threads of Go and of torch.

    python python/bench/threads.py [--rounds 3] [options of ranks.py]

Runs ranks.py, without a dense layer and with one, by each setting in turns, and prints the medians of the time of a step, and how that of the default compares
with the best.
"""

import argparse
import os
import statistics
import subprocess
import sys

from delayed import HERE, last

SETTINGS = [("", ""), *((go, torch) for go in ("1", "2", "4") for torch in ("1", "2"))]


def run(options, go, torch):
    environment = {k: v for k, v in os.environ.items() if k not in ("GOMAXPROCS", "OMP_NUM_THREADS")}
    if go:
        environment.update(GOMAXPROCS=go, OMP_NUM_THREADS=torch)
    done = subprocess.run([sys.executable, str(HERE / "ranks.py"), *options], env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return last(done.stdout)["ms_a_step"]


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--rounds", type=int, default=3)
    args, rest = p.parse_known_args()
    for name, options in (("rows only", []), ("with a dense layer of 256 units", ["--hidden", "256"])):
        found = {s: [] for s in SETTINGS}
        for _ in range(args.rounds):
            for s in SETTINGS:
                found[s].append(run(rest + options, *s))
        medians = {s: statistics.median(x) for s, x in found.items()}
        best = min(medians.values())
        print(f"{name}, load {os.getloadavg()[0]:.1f}: the default is {medians['', ''] / best:.2f} of the best", flush=True)
        for (go, torch), x in medians.items():
            print(f"  Go {go or 'default':8} torch {torch or 'default':8} {x:.2f} ms a step ({min(found[go, torch]):.2f}–{max(found[go, torch]):.2f})", flush=True)


if __name__ == "__main__":
    main()
