"""What is saved of models and optimizers, and goes on from there."""

import io

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
