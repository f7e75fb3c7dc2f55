"""What is saved of models and optimizers, and goes on from there."""

import copy
import ctypes
import io
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import godwit  # noqa: E402
from godwit import nn as gnn  # noqa: E402
from godwit import optim as goptim  # noqa: E402

ROWS, DIM = 50, 8


@pytest.fixture(params=[1, 3], ids=["one node", "three nodes"])
def nodes(request):
    return request.param


def values(seed=0, rows=ROWS, dim=DIM):
    return torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed))


def ids_of(step):
    return torch.randint(0, ROWS, (6, 5), generator=torch.Generator().manual_seed(step))


def steps(module, opt, count, begin=0):
    for step in range(begin, begin + count):
        opt.zero_grad()
        (module(ids_of(step)) * values(step, 5)).pow(2).sum().backward()
        opt.step()


def saved(*states):
    """What torch.save and torch.load make of states."""
    file = io.BytesIO()
    torch.save(states, file)
    file.seek(0)
    return torch.load(file)


KINDS = [
    ("SGD", dict(lr=0.01)),
    ("Adagrad", dict(lr=0.1, initial_accumulator_value=0.1, lr_decay=0.01)),
    ("SparseAdam", dict(lr=0.01, betas=(0.8, 0.95))),
]


@pytest.mark.parametrize("name, kwargs", KINDS)
def test_states_of_optimizers_are_those_of_torch_both_ways(nodes, name, kwargs):
    theirs = torch.nn.Embedding.from_pretrained(values(), freeze=False, sparse=True)
    b = getattr(torch.optim, name)(theirs.parameters(), **kwargs)
    steps(theirs, b, 5)
    model, state = saved(theirs.state_dict(), b.state_dict())
    with godwit.Cluster(nodes=nodes) as c:
        ours = gnn.Embedding(ROWS, DIM, cluster=c)
        a = getattr(goptim, name)(ours, lr=0.5)  # the other arguments are those of the state
        a.load_state_dict(state)
        ours.load_state_dict(model)  # in any order
        steps(theirs, b, 5, 5)
        steps(ours, a, 5, 5)
        assert torch.allclose(ours.rows(torch.arange(ROWS)), theirs.weight, atol=1e-5)
        ours.load_state_dict(ours.state_dict())  # which leaves the rule's state alone
        model, state = saved(ours.state_dict(), a.state_dict())
        theirs = torch.nn.Embedding(ROWS, DIM, sparse=True)
        theirs.load_state_dict(model)
        b = getattr(torch.optim, name)(theirs.parameters(), lr=0.5)
        b.load_state_dict(state)
        steps(theirs, b, 5, 10)
        steps(ours, a, 5, 10)
        assert torch.allclose(ours.rows(torch.arange(ROWS)), theirs.weight, atol=1e-5)


@pytest.mark.parametrize("name", ["Adagrad", "RowWiseAdagrad", "SparseAdam", "Adam"])
def test_a_state_that_is_loaded_back_while_training(nodes, name):
    with godwit.Cluster(nodes=nodes, policy="" if nodes == 1 else "static") as c:
        m = gnn.Embedding(ROWS, DIM, cluster=c)
        opt = getattr(goptim, name)(m, lr=0.1)
        steps(m, opt, 3)
        model, state = saved(m.state_dict(), opt.state_dict())
        steps(m, opt, 3, 3)
        want = m.rows(torch.arange(ROWS))
        m.load_state_dict(model)
        opt.load_state_dict(state)
        steps(m, opt, 3, 3)
        assert torch.equal(m.rows(torch.arange(ROWS)), want)
        first = {"state": {}, "param_groups": state["param_groups"]}
        opt.load_state_dict(first)
        assert opt.state_dict()["state"][0]["step"] == 0 and not c.worker.state(m.table, torch.arange(ROWS)).any()


def test_a_state_is_not_loaded_when_the_cluster_is_closed():
    with godwit.Cluster() as c:
        model = gnn.Embedding(9, 2, cluster=c)
        rows = goptim.Adagrad(model)
        states = model.state_dict(), rows.state_dict()
    for x, state in zip((model, rows), states):
        with pytest.raises(godwit.errors.ClosedError):
            x.load_state_dict(state)


@pytest.mark.parametrize("lacks", ["exp_avg", "exp_avg_sq"])
@pytest.mark.parametrize("started", [False, True])
def test_a_state_that_lacks_a_part_is_refused_when_it_is_loaded(lacks, started):
    with godwit.Cluster() as c:
        model = gnn.Embedding(9, 2, cluster=c)
        rows = goptim.SparseAdam(model)
        if started:
            model(torch.tensor([1]))
        state = {"step": 3, "exp_avg": torch.ones(9, 2), "exp_avg_sq": torch.ones(9, 2)}
        del state[lacks]
        with pytest.raises(godwit.errors.ArgumentError, match=f"the state has no {lacks}$"):
            rows.load_state_dict({"state": {0: state}, "param_groups": [{**rows.param_groups[0], "params": [0]}]})
        assert model(torch.tensor([1])).shape == (1, 2)


def test_states_without_rows():
    with godwit.Cluster() as c:
        m = torch.nn.Sequential(gnn.Embedding(10**9, DIM, cluster=c), torch.nn.Linear(DIM, 1))
        opt = goptim.Adagrad(godwit.parameters(m), lr=0.1)
        steps(m, opt, 2)
        with pytest.raises(ValueError, match="cluster.save"):
            m.state_dict()
        with pytest.raises(ValueError, match="cluster.save"):
            opt.state_dict()
        with godwit.without_rows():
            model, state = saved(m.state_dict(), opt.state_dict())
        assert list(model) == ["1.weight", "1.bias"] and state["state"] == {0: {"step": 2}}
        before = m[0].rows(ids_of(0)), c.worker.state(m[0].table, ids_of(0))
        m.load_state_dict(model)
        state["param_groups"][0]["lr"] = 0.2
        opt.load_state_dict(state)
        after = m[0].rows(ids_of(0)), c.worker.state(m[0].table, ids_of(0))
        assert torch.equal(before[0], after[0]) and torch.equal(before[1], after[1]) and opt.param_groups[0]["lr"] == 0.2


def test_states_that_do_not_fit_are_refused():
    with godwit.Cluster() as c:
        m = gnn.Embedding(ROWS, DIM, cluster=c)
        opt = goptim.Adagrad(m)
        state = opt.state_dict()
        for wrong, match in (
            ({"state": {0: {"step": 1, "sum": torch.zeros(3, DIM)}}, "param_groups": state["param_groups"]}, "shape"),
            ({"state": {}, "param_groups": [{**state["param_groups"][0], "weight_decay": 0.1}]}, "weight_decay"),
            ({"state": {}, "param_groups": [{**state["param_groups"][0], "eps": 0.1}]}, "accessed already"),
            ({"state": {}, "param_groups": []}, "parameter groups"),
        ):
            with pytest.raises(ValueError, match=match):
                opt.load_state_dict(wrong)
        with pytest.raises(ValueError, match="keeps 8 floats"):
            c.worker.set_state(m.table, [1], [[1.0]])


def test_a_state_that_lacks_a_large_table_is_refused_once_that_was_accessed():
    with godwit.Cluster() as c:
        m = gnn.Embedding(10**9, DIM, cluster=c)
        opt = goptim.Adagrad(m, lr=0.1)
        with godwit.without_rows():
            lacks = {**opt.state_dict(), "state": {}}
        opt.load_state_dict(lacks)
        steps(m, opt, 1)
        lacks["param_groups"][0]["lr"] = 0.2
        with pytest.raises(ValueError, match="nothing of its rows.*before the first forward"):
            opt.load_state_dict(lacks)
        assert opt.param_groups[0]["lr"] == 0.1


class Loader:
    """Batches in an order that it draws, from where its state says."""

    def __init__(self):
        self.at = 0

    def __iter__(self):
        while self.at < 200:
            self.at += 1
            yield ids_of(self.at)

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


class Run:
    """A model in training, with all that it takes to go on."""

    def __init__(self, cluster):
        torch.manual_seed(3)
        self.model = torch.nn.Sequential(gnn.Embedding(ROWS, DIM, cluster=cluster, name="rows"), torch.nn.Linear(DIM, 1))
        self.opts = [goptim.Adagrad(godwit.parameters(self.model), lr=0.3), torch.optim.Adam(self.model.parameters(), lr=0.01)]
        self.schedules = [torch.optim.lr_scheduler.CosineAnnealingLR(o, 200) for o in self.opts]
        self.loader = godwit.lookahead(Loader(), keys=lambda ids: {self.model[0]: ids}, worker=cluster.worker)

    def parts(self):
        return [self.model, *self.opts, *self.schedules, self.loader]

    def train(self, steps):
        for _, ids in zip(range(steps), self.loader):
            for o in self.opts:
                o.zero_grad()
            self.model(ids).pow(2).mean().backward()
            for x in (*self.opts, *self.schedules):
                x.step()

    def end(self):
        return self.model[0].rows(torch.arange(ROWS)), self.model[1].weight.detach().clone()


def go_on(folder, result):
    """The second process of the test below."""
    for how in ("state_dict", "cluster.save"):
        with godwit.Cluster(seed=1) as c:
            run = Run(c)
            states = torch.load(f"{folder}/state.pt") if how == "state_dict" else c.load(folder)
            for part, state in zip(run.parts(), states):
                part.load_state_dict(state)
            run.train(100)
            result.send([x.numpy() for x in run.end()])


def test_100_steps_and_100_in_another_process_are_200(tmp_path):
    import multiprocessing

    with godwit.Cluster(seed=1) as c:
        run = Run(c)
        run.train(100)
        torch.save([x.state_dict() for x in run.parts()], tmp_path / "state.pt")
        with godwit.without_rows():
            c.save(tmp_path, [x.state_dict() for x in run.parts()])
    with godwit.Cluster(seed=1) as c:
        run = Run(c)
        run.train(200)
        want = run.end()
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    p = spawn.Process(target=go_on, args=(str(tmp_path), there))
    p.start()
    for how in ("state_dict", "cluster.save"):
        assert here.poll(600), how
        for got, x in zip(here.recv(), want):
            assert (got == x.numpy()).all(), how
    p.join()


def test_a_checkpoint_of_a_cluster(tmp_path):
    with godwit.Cluster(nodes=3, seed=1) as c:
        m, late = gnn.Embedding(ROWS, DIM, cluster=c, name="m"), None
        opt = goptim.Adagrad(m, lr=0.1)
        steps(m, opt, 2)
        late = c.table("late", 10, 2)
        c.worker.push(late, [1], [[1.0, 2.0]])
        with pytest.raises(ValueError, match="cluster.save"):
            c.state_dict()
        assert c.save(tmp_path).endswith("#1") and c.save(tmp_path, {"step": 2}, keep=1).endswith("#2")
        state = c.state_dict()
        want = m.rows(torch.arange(ROWS)), c.worker.state(m.table, torch.arange(ROWS))
        c.worker.push(late, [1], [[1.0, 2.0]])
        with pytest.raises(ValueError, match="have changed"):
            c.state_dict()
        with pytest.raises(ValueError, match="before the first access"):
            c.load(tmp_path)

    saved = godwit.load(tmp_path)
    assert saved.number == 2 and saved.extra() == {"step": 2} and list(saved.tables) == ["m", "late"] and saved.tables["m"].state == DIM
    assert torch.equal(torch.from_numpy(saved.pull("m")), want[0]) and torch.equal(saved.state("m", torch.arange(ROWS)), want[1])
    assert saved.pull("late", [[1, 0]]).tolist() == [[[1, 2], [0, 0]]]
    for wrong in (lambda: saved.pull("x"), lambda: saved.pull("m", [ROWS]), lambda: godwit.load(tmp_path / "none"), lambda: godwit.load(f"{tmp_path}#1")):
        with pytest.raises((ValueError, IndexError)):
            wrong()

    from torch.distributed.checkpoint.stateful import Stateful

    with godwit.Cluster(seed=7) as c:
        assert isinstance(c, Stateful)
        m = gnn.Embedding.from_pretrained(values(), freeze=False, cluster=c, name="m")
        goptim.Adagrad(m, lr=0.1)
        c.load_state_dict(state)
        assert torch.equal(m.rows(torch.arange(ROWS)), want[0]) and torch.equal(c.worker.state(m.table, torch.arange(ROWS)), want[1])
        late = c.table("late", 10, 2)
        assert c.worker.pull(late, [1]).tolist() == [[1, 2]]
    with godwit.Cluster() as c:
        c.table("other", 3, 3)
        c.load(tmp_path)
        with pytest.raises(ValueError, match="tables were"):
            c.start()


def test_a_checkpoint_of_torch_refers_to_that_of_the_cluster(tmp_path):
    import torch.distributed.checkpoint as dcp

    with godwit.Cluster(seed=1) as c:
        m = torch.nn.Sequential(gnn.Embedding(ROWS, DIM, cluster=c, name="m"), torch.nn.Linear(DIM, 1))
        want = m(ids_of(0)).detach()
        c.save(tmp_path / "rows")
        with godwit.without_rows():
            dcp.save({"model": m.state_dict(), "rows": c}, checkpoint_id=tmp_path / "rest", no_dist=True)
    with godwit.Cluster(seed=2) as c:
        m = torch.nn.Sequential(gnn.Embedding(ROWS, DIM, cluster=c, name="m"), torch.nn.Linear(DIM, 1))
        with godwit.without_rows():
            state = {"model": m.state_dict(), "rows": c}
            dcp.load(state, checkpoint_id=tmp_path / "rest", no_dist=True)
            m.load_state_dict(state["model"])
        assert torch.equal(m(ids_of(0)), want)


def test_checkpoints_of_tables_that_were_added_later(tmp_path, monkeypatch):
    def values_at(place):
        saved = godwit.load(place)
        return {name: saved.pull(name, [1]).tolist() for name in saved.tables}

    place = str(tmp_path)
    with godwit.Cluster() as c:
        first = c.table("first", 10, 1)
        c.worker.push(first, [1], [[1]])
        assert c.save(place).endswith("#1")
        later = c.table("later", 10, 1)
        c.worker.push(later, [1], [[1]])
        assert c.save(place).endswith("#2")
        assert values_at(f"{place}#1") == {"first": [[1]]} and values_at(f"{place}#2") == {"first": [[1]], "later": [[1]]}

        c.worker.push(later, [1], [[1]])
        save, calls = c._library.save, []
        with monkeypatch.context() as m:  # which ends between the two
            m.setattr(c._library, "save", lambda *args: calls.append(args) or (save(*args) if len(calls) == 1 else -11))
            with pytest.raises(godwit.GodwitError):
                c.save(place, keep=1)
        assert values_at(place) == {"first": [[1]], "later": [[1]]}
        assert c.save(place, keep=1).endswith("#4")
        assert values_at(place) == {"first": [[1]], "later": [[2]]}
    for folder in (tmp_path, tmp_path / "tables-1"):
        assert [p.name for p in sorted(folder.glob("*.jsonl"))] == ["checkpoint-0000000004.jsonl"]
    with godwit.Cluster() as c:
        first, later = c.table("first", 10, 1), None
        c.load(place)
        assert c.worker.pull(first, [1]).tolist() == [[1]]
        assert c.worker.pull(c.table("later", 10, 1), [1]).tolist() == [[2]]


def test_a_place_does_not_depend_on_where_the_process_is_later(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with godwit.Cluster() as c:
        c.worker.push(c.table("t", 10, 1), [1], [[1]])
        assert c.save("here") == f"{tmp_path / 'here'}#1"
    for gone in (False, True):
        with godwit.Cluster() as c:
            t = c.table("t", 10, 1)
            monkeypatch.chdir(tmp_path)
            c.load("here")
            monkeypatch.chdir("/")
            if gone:
                (tmp_path / "here").rename(tmp_path / "gone")
                with pytest.raises(ValueError, match="checkpoint"):
                    c.worker.pull(t, [1])
            else:
                assert c.worker.pull(t, [1]).tolist() == [[1]]


def test_what_would_not_be_loaded_is_not_saved(tmp_path):
    with godwit.Cluster() as c:
        c.table("t", 10, 1)
        with pytest.raises(ValueError, match=r"load would not read.*: pathlib[^ ]*$"):
            c.save(tmp_path, {"place": tmp_path})
        assert c.save(tmp_path, {"step": torch.tensor(2)}).endswith("#1")


def test_rows_in_any_order_are_read_in_one_pass_over_a_checkpoint(tmp_path, monkeypatch):
    from godwit import _checkpoint

    n = 200
    with godwit.Cluster() as c:
        t = c.table("t", n, 2)
        c.worker.push(t, np.arange(n), np.stack([np.arange(n, dtype=np.float32)] * 2, 1))
        saved = godwit.load(c.save(tmp_path))
    monkeypatch.setattr(_checkpoint, "PART", 16)
    rows = np.random.default_rng(1).integers(0, n, (60, 2))
    read, real = [], saved._library.rows
    monkeypatch.setattr(saved._library, "rows", lambda id, i, at, k, *to: read.extend((ctypes.c_int64 * k).from_address(at)) or real(id, i, at, k, *to))
    assert (saved.pull("t", rows) == rows[..., None]).all()
    assert read == sorted(rows.ravel())
    assert (saved.pull("t", torch.from_numpy(rows)).numpy() == rows[..., None]).all()
    assert (saved.pull("t") == np.arange(n)[:, None]).all()
    assert saved.state("t", rows).shape == (60, 2, 0)
    rows[50, 1] = n
    with pytest.raises(IndexError, match=f"row {n} at position 101, .*0 … {n - 1}"):
        saved.pull("t", rows)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_of_a_checkpoint_is_read_by_itself(tmp_path, monkeypatch, again):
    monkeypatch.chdir(tmp_path)
    with godwit.Cluster() as c:
        t = c.table("t", rows=10, dim=1)
        for n in (1, 2):
            c.worker.set(t, [3], [[n]])
            c.save("runs")
    first = godwit.load("runs#1")
    monkeypatch.chdir("/")
    for _ in range(2):
        other = again(first)
        assert other.number == 1 and other.pull("t", [3]).tolist() == [[1]]
        del other
    assert first.pull("t", [3]).tolist() == [[1]]  # what a copy had is its own


@pytest.mark.parametrize("name", ["Adagrad", "SparseAdam"])
def test_a_state_of_another_optimizer_is_refused_and_changes_nothing(name):
    with godwit.Cluster() as c:
        other = goptim.SGD(gnn.Embedding(9, 2, cluster=c), lr=0.5)
        optimizer = getattr(goptim, name)(gnn.Embedding(9, 2, cluster=c), lr=0.1)
        before = optimizer.state_dict()["param_groups"]
        with pytest.raises(ValueError, match=f"{name}: the state has no .* of another kind"):
            optimizer.load_state_dict(other.state_dict())
        assert optimizer.state_dict()["param_groups"] == before
