"""What announcing gains where messages take time: ranks that reach each other by proxies that delay.

    python python/bench/delayed.py [--ms 0.5] [--rounds 3] [--ranks 4] [--torch] [options of ranks.py]

Runs ranks.py announced and not, without delay and with it, in turns, and prints medians and ranges of the time of a step and of its
processor time; with --torch beside DistributedDataParallel with sparse gradients, without delay. It needs Go, for the proxies.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def ports(n):
    """Returns addresses that are free now."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    found = ["127.0.0.1:%d" % s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return found


def run(ranks, options, slow, ms):
    """Runs ranks.py and returns what it prints. With a delay, ranks are told to others by the addresses of proxies."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", str(HERE / "ranks.py"), *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if not ms:
        return last(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout)
    listening = ports(ranks)
    proxies = subprocess.Popen([slow, f"{ms}ms", *listening], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        told = [proxies.stdout.readline().strip() for _ in range(ranks)]
        command += ["--listen", ",".join(listening), "--advertise", ",".join(told)]
        return last(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout)
    finally:
        proxies.stdin.close()
        proxies.wait()


def last(text):
    return json.loads([line for line in text.splitlines() if line.startswith("{")][-1])


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--ms", type=float, default=0.5, help="one way")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--ranks", type=int, default=4)
    p.add_argument("--torch", action="store_true")
    args, rest = p.parse_known_args()
    cases = {
        "announced": ([], 0),
        "unannounced": (["--unannounced"], 0),
        f"announced, {args.ms} ms": ([], args.ms),
        f"unannounced, {args.ms} ms": (["--unannounced"], args.ms),
    }
    if args.torch:
        cases["torch, DDP"] = (["--torch"], 0)
    found = {name: [] for name in cases}
    with tempfile.TemporaryDirectory() as folder:
        slow = os.path.join(folder, "slow")
        subprocess.run(["go", "build", "-o", slow, "./slow"], cwd=HERE, check=True)
        for _ in range(args.rounds):
            for name, (options, ms) in cases.items():
                found[name].append(run(args.ranks, rest + options, slow, ms))
    print(f"{args.ranks} ranks, {args.rounds} rounds, load {os.getloadavg()[0]:.1f}: medians (and ranges)")
    for name, results in found.items():
        columns = []
        for what, unit in (("ms_a_step", "ms a step"), ("cpu_ms_a_step", "ms of processor"), ("reads_without_message", "% of reads without a message"), ("without_message", "% of all accesses")):
            x = [r[what] for r in results if what in r]
            if x:
                columns.append(f"{statistics.median(x):.1f} ({min(x):.1f}–{max(x):.1f}) {unit}")
        print(f"  {name:24}", ", ".join(columns))


if __name__ == "__main__":
    main()
