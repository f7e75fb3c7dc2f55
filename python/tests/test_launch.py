"""Several processes, started by torchrun."""

import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import godwit
from godwit import _launch, errors

torch = pytest.importorskip("torch", reason="torch is not installed")

LAUNCHERS = ("WORLD_SIZE", "RANK", "GODWIT_TOKEN")
_places = itertools.count(os.getpid() * 8, 8)  # tests of other processes have others


def meeting():
    """Returns variables that say where ranks meet: a port after which four are free. The system gives none of them to a connection, as it does with higher ones."""
    for at in _places:
        first = 10_000 + at % 20_000
        try:
            for port in range(first + 1, first + 5):
                with socket.socket() as s:
                    s.bind(("127.0.0.1", port))
        except OSError:
            continue
        return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(first)}


@pytest.fixture
def ranks(tmp_path):
    """Runs a program as the ranks of a run, which meet without torch. Returns the exit code, output and error output of each."""

    def run(program, world=2, names=("WORLD_SIZE", "RANK")):
        (tmp_path / "train.py").write_text(textwrap.dedent(program))
        env = {**{k: v for k, v in os.environ.items() if k not in LAUNCHERS}, **meeting(), names[0]: str(world)}
        started = [
            subprocess.Popen(
                [sys.executable, "train.py"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**env, names[1]: str(r)}
            )
            for r in range(world)
        ]  # fmt: skip
        try:
            told = [p.communicate(timeout=300) for p in started]
        finally:
            for p in started:
                p.kill()
        return [(p.returncode, *t) for p, t in zip(started, told)]

    return run


@pytest.mark.parametrize("ranks", [4])
def test_ranks_train_one_model(tmp_path, torchrun, ranks):
    code, out, err = torchrun(
        tmp_path,
        """
        import sys, torch, godwit
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel as DDP

        dist.init_process_group("gloo")
        c = godwit.init()
        assert (c.rank, c.world) == (dist.get_rank(), dist.get_world_size())
        start = torch.randn(100, 4, generator=torch.Generator().manual_seed(1))

        class Model(torch.nn.Module):
            def __init__(self, emb):
                super().__init__()
                torch.manual_seed(2)
                self.emb, self.top = emb, torch.nn.Linear(4, 1)
            def forward(self, x):
                return self.top(self.emb(x))

        ours = Model(godwit.nn.Embedding.from_pretrained(start, freeze=False))
        rows = godwit.optim.SGD(godwit.parameters(ours), lr=0.1)
        ddp = DDP(ours)
        dense = torch.optim.SGD(ddp.parameters(), lr=0.1)
        theirs = Model(torch.nn.Embedding.from_pretrained(start.clone(), freeze=False))
        both = DDP(theirs)
        other = torch.optim.SGD(both.parameters(), lr=0.1)
        g = torch.Generator().manual_seed(c.rank)
        for step in range(10):
            x = torch.randint(0, 100, (16,), generator=g)
            for m, opts in ((ddp, (dense, rows)), (both, (other,))):
                for o in opts: o.zero_grad()
                m(x).pow(2).mean().backward()
                for o in opts: o.step()
            c.worker.advance()
            c.worker.wait_sync()
            c.worker.barrier()
            c.worker.wait_sync()
        got = ours.emb.rows(torch.arange(100))
        print(f"difference {(got - theirs.emb.weight.detach()).abs().max().item() < 1e-5} {c.rank}", flush=True)
        c.worker.barrier()
        dist.destroy_process_group()
        """,
        ranks,
    )
    assert code == 0, err[-5000:]
    for r in range(ranks):  # lines may run into each other
        assert f"difference True {r}" in out, out


@pytest.mark.parametrize("victim", [0, 1])
def test_a_rank_that_is_killed_is_named_by_the_others(ranks, victim):
    told = ranks(
        f"""
        import os, signal, time, numpy as np, godwit
        c = godwit.init()
        t = c.table("t", 1000, 4)
        c.worker.push(t, np.arange(1000), np.ones((1000, 4), np.float32))
        try:
            c.worker.barrier()  # rank 0, which serves it, may be gone before all have heard of it
            if c.rank == {victim}:
                print(time.time(), flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            while True:
                c.worker.pull(t, np.arange(1000))
                c.worker.barrier()
        except godwit.errors.NodeLostError as e:
            print(time.time(), e)
        """,
        3,
    )
    died = float(told[victim][1])
    for rank, (code, out, err) in enumerate(told):
        if rank != victim:
            at, _, error = out.partition(" ")
            assert code == 0 and float(at) - died < 10, (out, err)
            assert f"node {victim}" in error


def test_a_rank_that_raises_ends_the_others(ranks):
    told = ranks(
        """
        import numpy as np, godwit
        c = godwit.init()
        t = c.table("t", 1000, 4)
        c.worker.push(t, np.arange(1000), np.ones((1000, 4), np.float32))
        if c.rank == 1:
            raise ValueError("a mistake of mine")
        c.worker.barrier()
        """
    )
    assert all(code != 0 for code, _, _ in told) and "a mistake of mine" in told[1][2], told
    assert "NodeLostError" in told[0][2] and "node 1" in told[0][2] and "ValueError: a mistake of mine" in told[0][2], told


def test_a_run_that_lost_a_rank_goes_on_from_its_checkpoint(tmp_path, torchrun):
    code, out, err = torchrun(
        tmp_path,
        """
        import os, signal, sys, torch, godwit
        c, place = godwit.init(), "ckpt.pt"
        model = godwit.nn.Embedding(100, 4, init=godwit.zero())
        rows = godwit.optim.SGD(godwit.parameters(model), lr=0.25)
        begin = 0
        if os.path.exists(place):
            state = torch.load(place)
            begin = state["epoch"]
            if c.rank == 0:
                model.load_state_dict(state["model"])
        c.worker.barrier()
        for epoch in range(begin, 6):
            if epoch == 4 and c.rank == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
                os.kill(os.getpid(), signal.SIGKILL)
            for step in range(5):
                ids = torch.arange(c.rank, 100, c.world)
                rows.zero_grad()
                (0.5 * c.world * (model(ids) - ids[:, None] / 100).pow(2)).sum().backward()
                rows.step()
            c.worker.sync_all()
            if c.rank == 0 and epoch == 2:
                torch.save({"epoch": epoch + 1, "model": model.state_dict()}, place)
            c.worker.barrier()
        want = torch.arange(100)[:, None] / 100 * (1 - 0.75**30)
        print(f"begun at {begin} {(model.rows(torch.arange(100)) - want).abs().max().item() < 1e-5}", flush=True)
        c.worker.barrier()
        """,
        2,
        "--max-restarts=1",
    )
    assert code == 0, err[-5000:]
    assert out.count("begun at 3 True") == 2, out


@pytest.mark.parametrize("launcher", ["variables", "slurm"])
def test_processes_meet_without_a_store(ranks, launcher):
    names = {"variables": ("WORLD_SIZE", "RANK"), "slurm": ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID")}[launcher]
    told = ranks(
        """
        import sys, numpy as np, godwit
        with godwit.init() as c:
            t, other = c.table("t", 10, 1), None
            c.worker.push(t, np.arange(10), np.ones((10, 1), np.float32))
            u = c.table("later", 10, 1)
            c.worker.push(u, [3], np.ones((1, 1), np.float32))
            for _ in range(2):
                c.worker.wait_sync(); c.worker.barrier()
            print("rows", c.rank, c.world, c.worker.pull(t, np.arange(10)).sum(), c.worker.pull(u, [3]).sum(), "torch" in sys.modules)
            c.worker.barrier()
        """,
        names=names,
    )
    for r, (_, out, err) in enumerate(told):
        assert out.strip() == f"rows {r} 2 20.0 2.0 False", (out, err)


PUSHING = """
import sys, numpy as np, godwit
tls = godwit.TLS("cert.pem", "key.pem", "cert.pem") if sys.argv[1] == "tls" else None
at = dict(address=sys.argv[2], run="ads") if len(sys.argv) > 2 else {}
with godwit.init(tls=tls, **at) as c:
    t = c.table("t", 1000, 1)
    c.worker.push(t, np.arange(1000), np.ones((1000, 1), np.float32))
    for _ in range(2):
        c.worker.wait_sync(); c.worker.barrier()
    print("rows", c.rank, c.worker.pull(t, np.arange(1000)).sum(), c.stats()["address"].rpartition(":")[0])
    c.worker.barrier()
"""


@pytest.fixture
def certificate(tmp_path):
    """Makes a certificate of this machine that is its own authority, and returns the names of its files."""
    if not shutil.which("openssl"):
        pytest.skip("openssl, which makes certificates, is not installed")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2",
         "-subj", "/CN=godwit", "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "extendedKeyUsage=serverAuth,clientAuth"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    return [str(tmp_path / f) for f in ("cert.pem", "key.pem", "cert.pem")]


def pushing(tmp_path, rank, *args, **variables):
    """Starts a rank of two that pushes to the same rows."""
    kept = {k: v for k, v in os.environ.items() if k not in LAUNCHERS}
    return subprocess.Popen(
        [sys.executable, "-c", PUSHING, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        env={**kept, "WORLD_SIZE": "2", "RANK": str(rank), **variables},
    )  # fmt: skip


def test_ranks_encrypt_and_let_nobody_else_in(tmp_path, certificate):
    at = meeting()
    first, stranger = pushing(tmp_path, 0, "tls", **at), pushing(tmp_path, 1, "plain", **at)
    out, err = stranger.communicate(timeout=120)
    assert "only one side has TLS" in err and "rows" not in out, (out, err)
    second = pushing(tmp_path, 1, "tls", **at)
    for r, p in enumerate((first, second)):
        out, err = p.communicate(timeout=120)
        assert out.strip() == f"rows {r} 2000.0 127.0.0.1", (out, err)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Builds an etcd, and returns its program."""
    root = Path(__file__).resolve().parents[2]
    if not shutil.which("go") or not (root / "go.mod").exists():
        pytest.skip("an etcd for tests is built by Go from the repository, which is not here")
    program = str(tmp_path_factory.mktemp("etcd") / "etcd")
    built = subprocess.run(["go", "build", "-o", program, "./python/tests/etcd"], cwd=root, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return program


@pytest.mark.parametrize("tls", ["plain", "tls"])
def test_ranks_meet_at_an_etcd(tmp_path, server, tls, request):
    files = request.getfixturevalue("certificate") if tls == "tls" else []
    with subprocess.Popen([server, *files], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as etcd:
        try:
            address, token = etcd.stdout.readline().split()
            stranger = pushing(tmp_path, 0, tls, address, GODWIT_TOKEN="x" * 16)
            out, err = stranger.communicate(timeout=120)
            assert "rows" not in out and "token" in err and "etcd at" in err, (out, err)
            ranks = [pushing(tmp_path, r, tls, address, GODWIT_TOKEN=token) for r in range(2)]
            for r, p in enumerate(ranks):
                out, err = p.communicate(timeout=120)
                assert out.strip() == f"rows {r} 2000.0 127.0.0.1", (out, err)
        finally:
            etcd.stdin.close()


def test_what_slurm_says():
    environment = {"SLURM_STEP_NUM_TASKS": "8", "SLURM_PROCID": "5", "SLURM_STEP_NODELIST": "gpu[03-07,9],login", "SLURM_JOB_ID": "77", "SLURM_STEP_ID": "2"}
    found = _launch.find(environment)
    assert (found.rank, found.world, found.host, found.store) == (5, 8, "gpu03", None)
    assert "slurm-77.2" in found.run and found.port == _launch.find({**environment, "SLURM_PROCID": "0"}).port
    assert _launch.find({**environment, "MASTER_ADDR": "x", "MASTER_PORT": "1234"}).port == 1235
    assert _launch.find({"SLURM_NTASKS": "8", "SLURM_PROCID": "0"}) is None  # a batch script
    assert _launch.first_host("a1,b2") == "a1" and _launch.first_host("n[1,4]-ib,m") == "n1-ib"


def test_tables_that_differ_are_told(ranks):
    told = ranks(
        """
        import godwit
        c = godwit.init()
        t = c.table("t", 10 + c.rank, 1)
        try:
            c.worker.pull(t, [1])
        except godwit.GodwitError as e:
            print("told:", e)
        """
    )
    for _, out, err in told:
        assert out.count("told:") == 1 and out.count("nodes differ") == 1, (out, err)
        assert "table t of this one" in out and "10 rows of 1 floats" in out and "11 rows of 1 floats" in out, (out, err)


def test_a_process_that_a_rank_starts_is_not_that_rank(ranks):
    told = ranks(
        """
import subprocess, sys, godwit
c = godwit.init()
t = c.table("t", 10, 1)
if c.rank == 0:  # before rank 1 can have met the rank
    p = subprocess.run([sys.executable, "-c", "import godwit; godwit.init().table('t', 10, 1).cluster.start()"], stderr=subprocess.PIPE, text=True)
    print(p.returncode, f"was started by process {__import__('os').getpid()}" in p.stderr, "rank 0 of 2" in p.stderr)
c.worker.push(t, [1], [[1]])
c.worker.sync_all()
print(c.worker.pull(t, [1]).tolist())
""",
    )
    assert [x[:2] for x in told] == [(0, "1 True True\n[[2.0]]\n"), (0, "[[2.0]]\n")], told


@pytest.mark.parametrize(
    "environment",
    [
        {"WORLD_SIZE": "x"},
        {"WORLD_SIZE": "2"},
        {"WORLD_SIZE": "2", "RANK": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"},
        {"WORLD_SIZE": "2", "RANK": "1", "MASTER_ADDR": "a", "MASTER_PORT": "70000"},
        {"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1"},
    ],
)
def test_variables_that_do_not_tell_enough(environment):
    with pytest.raises(errors.ArgumentError, match="WORLD_SIZE"):
        _launch.find(environment)


@pytest.mark.parametrize(("host", "coordinator"), [("10.0.0.1", "10.0.0.1:29502"), ("gpu1", "gpu1:29502"), ("fd00::2", "[fd00::2]:29502"), ("[fd00::2]", "[fd00::2]:29502")])
def test_where_ranks_meet(host, coordinator):
    launch = _launch.find({"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": host, "MASTER_PORT": "29500"})
    assert launch is not None and launch.member(1)["coordinator"] == coordinator


def test_without_a_launcher_there_is_one_process():
    assert _launch.find({}) is None and _launch.find({"WORLD_SIZE": "1", "RANK": "0"}) is None
    with godwit.Cluster() as c:
        assert (c.rank, c.world) == (0, 1)


def test_ranks_that_meet_by_an_etcd():
    environment = {"WORLD_SIZE": "4", "RANK": "2", "TORCHELASTIC_RUN_ID": "a b", "TORCHELASTIC_RESTART_COUNT": "1", "GODWIT_TOKEN": "t"}
    launch = _launch.joining("10.0.0.1:2379", None, None, "", environment)
    launch.tls = godwit.TLS("c", "k", "a", "n")
    member = launch.member(3)
    assert member == {
        "run": "a-b-1-3", "rank": 2, "serve": False, "listen": "", "advertise": "", "join_ms": 60000,
        "etcd": ["10.0.0.1:2379"], "token": "t", "tls": {"cert": "c", "key": "k", "ca": "a", "name": "n"},
    }  # fmt: skip
    launch = _launch.joining(["a:1", "b:1"], 0, 2, "ads", environment)
    assert (launch.rank, launch.world, launch.run, launch.etcd) == (0, 2, "ads", ("a:1", "b:1"))
    for address, rank, world in (("", 0, 1), ([], 0, 1), ([3], 0, 1), ("a:1", 2, 2), ("a:1", None, 2), ("a:1", 0, None), ("a:1", True, 2)):
        with pytest.raises(errors.ArgumentError):
            _launch.joining(address, rank, world, "", {})
    for wrong in ({"rank": 1}, {"world": 2}, {"run": "x"}, {"tls": godwit.TLS("c", "k", "a")}):
        with pytest.raises(errors.ArgumentError):
            godwit.init(**wrong)
    with pytest.raises(errors.GodwitError, match="etcd at 127.0.0.1:1"):  # it refuses, and is waited for
        _launch.WAIT, before = 0.5, _launch.WAIT
        try:
            c = godwit.init(address="127.0.0.1:1", rank=0, world=1)
            with c:
                c.table("t", 10, 1)
                c.start()
        finally:
            _launch.WAIT = before


def test_rank_0_has_what_ranks_with_other_folders_do(tmp_path, ranks):
    told = ranks(
        f"""
        import os
        import godwit
        c = godwit.init(trace=os.path.join({str(tmp_path)!r}, "of" + os.environ["RANK"]))
        t, w = c.table("t", 100, 2), c.worker
        for step in range(5):
            w.push(t, list(range(10)), [[1.0, 1.0]] * 10)
            w.advance()
        w.barrier()
        """,
        3,
    )
    assert all(code == 0 for code, _, _ in told), told
    (run,) = (tmp_path / "of0").iterdir()
    for rank in (1, 2):
        for got in sorted((run / f"node-{rank}").iterdir()):
            want = (tmp_path / f"of{rank}" / run.name / f"node-{rank}" / got.name).read_bytes()
            assert want.startswith(got.read_bytes()) and got.stat().st_size > 0
        samples = [json.loads(line) for f in sorted((run / f"node-{rank}").glob("*.samples")) for line in f.read_text().splitlines()]
        assert samples[-1]["items"] == 5 and samples[0]["nodes"] == 3


def test_ranks_write_what_they_do(tmp_path, ranks):
    told = ranks(
        f"""
        import godwit
        c = godwit.init(trace={str(tmp_path / "trace")!r})
        t, w = c.table("t", 100, 2), c.worker
        for step in range(5):
            w.push(t, list(range(10)), [[1.0, 1.0]] * 10)
            w.advance()
        if c.rank == 0:
            c.note(epoch=1, of=1, loss=0.25)
        w.barrier()
        """,
        2,
    )
    assert all(code == 0 for code, _, _ in told), told
    (run,) = (tmp_path / "trace").iterdir()
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    assert events[1]["start"]["task"].endswith(".py") and events[2]["epoch"]["loss"] == 0.25 and "end" in events[-1]
    for rank in range(2):
        samples = [json.loads(line) for f in sorted((run / f"node-{rank}").glob("*.samples")) for line in f.read_text().splitlines()]
        assert samples[-1]["items"] == 5 and samples[0]["nodes"] == 2


def test_ranks_evaluate_without_making_rows(ranks):
    program = """
        import torch, godwit
        ROWS = 3000
        cluster = godwit.init(seed=3)
        module = godwit.nn.Embedding(ROWS, 8, name="t", init=godwit.uniform(-1, 1))
        optimizer = godwit.optim.Adagrad(module, lr=0.1)
        module(torch.arange(cluster.rank, 300, 2)).sum().backward()
        optimizer.step()
        for _ in range(2):
            cluster.worker.wait_sync(); cluster.worker.barrier()
        with torch.no_grad():
            looked = module(torch.arange(ROWS))
        cluster.worker.barrier()
        remote = cluster.stats()["remote"]
        with torch.no_grad():
            module(torch.arange(300, ROWS))
        assert cluster.stats()["remote"] == remote, "values of rows that nobody has accessed came by message"
        cluster.worker.barrier()
        assert torch.equal(looked, module(torch.arange(ROWS)))
        cluster.worker.barrier()
        print("fine", flush=True)
    """
    for code, out, err in ranks(program):
        assert code == 0 and out.count("fine") == 1, out + err


@pytest.mark.parametrize("end, code, why", [("raise ValueError('a batch')", 1, "ValueError: a batch"), ("sys.exit(3)", 3, "SystemExit: 3")])
@pytest.mark.parametrize("failing", [0, 1])
def test_a_rank_that_fails_in_a_with_block_waits_for_nobody(ranks, failing, end, code, why):
    told = ranks(
        f"""
import sys, godwit
with godwit.init() as c:
    t = c.table("t", 10, 1)
    try:
        c.worker.barrier()  # the other rank may hear of the loss before it hears of the barrier
        if c.rank == {failing}:
            {end}
        while True:
            c.worker.pull(t, [1, 2, 3])
    except godwit.errors.NodeLostError as e:
        print(e)
""",
    )
    assert told[failing][0] == code and (code == 3 or told[failing][2].rstrip().endswith(why)), told
    assert f"node {failing}" in told[1 - failing][1], told
    assert failing == 0 or why in told[1 - failing][1], told  # rank 0 coordinates the run: with it the others may lose its last word


def test_a_rank_that_exits_is_not_waited_for_at_barriers(ranks):
    told = ranks(
        """
import sys, godwit
c = godwit.init()
t = c.table("t", 10, 1)
c.worker.barrier()
if c.rank == 1:
    sys.exit(3)
for call in (c.worker.barrier, c.worker.sync_all, lambda: c.save("none")):
    try:
        call()
    except godwit.errors.NodeLostError as e:
        print("rank 1 has closed" in str(e))
print(c.worker.pull(t, [1]).tolist())
""",
    )
    assert told[0][:2] == (0, "True\nTrue\nTrue\n[[0.0]]\n") and told[1][0] == 3, told


@pytest.mark.parametrize("left", [0, 1])
def test_a_table_that_a_rank_has_left_before_is_refused_at_once(ranks, left):
    told = ranks(
        f"""
import time, godwit
c = godwit.init()
t = c.table("t", 10, 1)
c.worker.barrier()
if c.rank != {left}:
    while not c.stats()["closed"]:
        time.sleep(0.01)
    begin = time.monotonic()
    try:
        c.worker.pull(c.table("late", 10, 1), [1])
    except godwit.errors.NodeLostError as e:
        print("rank {left} has closed" in str(e) and "'late'" in str(e) and time.monotonic() - begin < 20)
    print(c.worker.pull(t, [1]).tolist())
c.close()
""",
    )
    assert [r[:2] for r in told] == [(0, "" if rank == left else "True\n[[0.0]]\n") for rank in range(2)], told


@pytest.mark.parametrize("lost", [0, 1])
def test_a_table_of_a_run_that_has_lost_a_rank_is_refused_at_once(ranks, lost):
    told = ranks(
        f"""
import os, signal, time, godwit
c = godwit.init()
t, begin = c.table("t", 10, 1), None
try:
    c.worker.barrier()  # the other rank may hear of the loss before it hears of the barrier
    if c.rank == {lost}:
        os.kill(os.getpid(), signal.SIGKILL)
    late, begin = c.table("late", 10, 1), time.monotonic()
    c.worker.pull(late, [1])
except godwit.errors.NodeLostError as e:
    print("node {lost}" in str(e) and (begin is None or time.monotonic() - begin < 20))
""",
    )
    assert told[lost][0] == -9 and told[1 - lost][1] == "True\n", told
