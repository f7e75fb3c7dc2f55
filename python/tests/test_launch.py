"""Several processes, started by torchrun."""

import pytest

import godwit
from godwit import _launch, errors

torch = pytest.importorskip("torch", reason="torch is not installed")


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
        print("difference", (got - theirs.emb.weight.detach()).abs().max().item() < 1e-5, c.worker.cluster.rank, flush=True)
        c.worker.barrier()
        dist.destroy_process_group()
        """,
        ranks,
    )
    assert code == 0, err[-5000:]
    lines = [line for line in out.split("\n") if line.startswith("difference")]  # gloo says something, too
    assert sorted(lines) == [f"difference True {r}" for r in range(ranks)], out


@pytest.mark.parametrize("victim", [0, 1])
def test_a_rank_that_is_killed_is_named_by_the_others(tmp_path, torchrun, victim):
    code, out, err = torchrun(
        tmp_path,
        f"""
        import os, signal, sys, time, torch, godwit
        c = godwit.init()
        t = c.table("t", 1000, 4)
        c.worker.push(t, torch.arange(1000), torch.ones(1000, 4))
        c.worker.barrier()
        if c.rank == {victim}:
            os.kill(os.getpid(), signal.SIGKILL)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun's, when it has noticed
        begin = time.time()
        try:
            while True:
                c.worker.pull(t, torch.arange(1000))
                c.worker.barrier()
        except godwit.errors.NodeLostError as e:
            print(f"rank {{c.rank}} after {{time.time() - begin:.1f}}: {{e}}", flush=True)
        """,
        3,
    )
    lines = [line for line in out.split("\n") if line.startswith("rank")]
    assert len(lines) == 2, (out, err[-3000:])
    for line in lines:
        assert float(line.split()[3][:-1]) < 10
        assert f"node {victim}" in line or victim == 0 and "the process that serves" in line


def test_a_rank_that_raises_ends_the_others(tmp_path, torchrun):
    code, out, err = torchrun(
        tmp_path,
        """
        import torch, godwit
        c = godwit.init()
        t = c.table("t", 1000, 4)
        c.worker.push(t, torch.arange(1000), torch.ones(1000, 4))
        if c.rank == 1:
            raise ValueError("a mistake of mine")
        c.worker.barrier()
        """,
        2,
    )
    assert code != 0 and "a mistake of mine" in err


def test_a_restart_forms_a_cluster_of_its_own(tmp_path, torchrun):
    code, out, err = torchrun(
        tmp_path,
        """
        import os, torch, godwit
        c = godwit.init()
        t = c.table("t", 10, 1)
        c.worker.push(t, torch.arange(10), torch.ones(10, 1))
        c.worker.barrier()
        if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and c.rank == 1:
            os._exit(3)
        c.worker.wait_sync(); c.worker.barrier()
        print("rows", c.worker.pull(t, torch.arange(10)).sum().item(), flush=True)
        c.worker.barrier()
        """,
        2,
        "--max-restarts=1",
    )
    assert code == 0, err[-5000:]
    assert out.count("rows 20.0") == 2


def test_tables_that_differ_are_told(tmp_path, torchrun):
    code, out, err = torchrun(
        tmp_path,
        """
        import torch, godwit
        c = godwit.init()
        t = c.table("t", 10 + c.rank, 1)
        try:
            c.worker.pull(t, [1])
        except godwit.GodwitError as e:
            print("told:", e, flush=True)
        """,
        2,
    )
    assert out.count("told:") == 2 and out.count("nodes differ") == 2, (out, err[-2000:])


@pytest.mark.parametrize(
    "environment",
    [
        {"WORLD_SIZE": "x"},
        {"WORLD_SIZE": "2"},
        {"WORLD_SIZE": "2", "RANK": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"},
        {"WORLD_SIZE": "2", "RANK": "1", "MASTER_ADDR": "a", "MASTER_PORT": "1"},
    ],
)
def test_variables_that_do_not_tell_enough(environment):
    with pytest.raises(errors.ArgumentError, match="WORLD_SIZE"):
        _launch.find(environment)


def test_without_a_launcher_there_is_one_process():
    assert _launch.find({}) is None and _launch.find({"WORLD_SIZE": "1", "RANK": "0"}) is None
    with godwit.Cluster() as c:
        assert (c.rank, c.world) == (0, 1)
