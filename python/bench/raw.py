"""What calls of Python cost beside the same loop in Go: pulls and pushes of random rows of 64 floats.

    taskset -c 0 env GOMAXPROCS=1 python python/bench/raw.py [rounds]

Each side has one core. They take turns, and ratios are of medians of the rounds' processor times. It needs Go and this repository.
"""

import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import godwit

ROOT = Path(__file__).resolve().parents[2]
ROWS, DIM, SETS = 200_000, 64, 20


def ours():
    """Returns µs of each call."""
    rng, took = np.random.default_rng(1), {}
    with godwit.Cluster() as c:
        t, w = c.table("t", ROWS, DIM, rule="adagrad(lr=0.1)"), c.worker
        every = np.full((ROWS, DIM), 0.01, np.float32)
        w.push(t, np.arange(ROWS), every)  # so that rows exist
        for n in (1000, 10_000):
            values, rows = every[:n].copy(), [rng.integers(0, ROWS, n) for _ in range(SETS)]
            for name, f in (("pull", lambda i: w.pull(t, rows[i % SETS], values)), ("push", lambda i: w.push(t, rows[i % SETS], values))):
                f(0)
                count = 4_000_000 // n
                begin = time.process_time()
                for i in range(count):
                    f(i)
                took[f"{name}/{n}"] = (time.process_time() - begin) / count * 1e6
    return took


def theirs(program):
    out = subprocess.run([program, "-test.run", "^$", "-test.bench", "Rows", "-test.benchtime", "0.5s", "-test.cpu", "1"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {name: float(ns) / 1000 for name, ns in re.findall(r"^BenchmarkRows/(\S+)\s.*?([\d.]+) cpu-ns/op", out, re.M)}


def main():
    with tempfile.TemporaryDirectory() as folder:
        program = folder + "/loop"
        subprocess.run(["go", "test", "-c", "-o", program, "./internal/capi"], cwd=ROOT, check=True)
        found = []
        for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
            found.append((ours(), theirs(program)))
    for name in found[0][0]:
        a, b = ([x[name] for x in side] for side in zip(*found))
        print(f"{name}: {statistics.median(a):.0f} µs ({min(a):.0f}–{max(a):.0f}), in Go {statistics.median(b):.0f} ({min(b):.0f}–{max(b):.0f}): {statistics.median(a) / statistics.median(b):.2f}")


if __name__ == "__main__":
    main()
