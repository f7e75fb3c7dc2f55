"""godwit.nn and godwit.optim beside torch's."""

import copy
import inspect
import io
import os
import pickle
import sys
import types
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import godwit  # noqa: E402
from godwit import nn as gnn  # noqa: E402
from godwit import optim as goptim  # noqa: E402

ROWS, DIM = 50, 8


@pytest.fixture(params=[1, 3], ids=["one node", "three nodes"])
def on(request):
    with godwit.Cluster(seed=1, nodes=request.param, policy="" if request.param == 1 else "static") as c:
        yield c


def values(seed=0, rows=ROWS, dim=DIM):
    return torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed))


def both(cluster, kind="Embedding", **kwargs):
    """A module of ours and one of torch's with the same values."""
    v = values()
    ours = getattr(gnn, kind).from_pretrained(v, freeze=False, cluster=cluster, **kwargs)
    theirs = getattr(torch.nn, kind).from_pretrained(v.clone(), freeze=False, sparse=kwargs.get("mode") != "max", **kwargs)
    return ours, theirs


def same(ours, theirs, tolerance=1e-5):
    assert torch.allclose(ours.rows(torch.arange(ROWS)), theirs.weight.detach(), atol=tolerance, rtol=1e-5)


OPTIMIZERS = [
    ("SGD", dict(lr=0.1)),
    ("Adagrad", dict(lr=0.1, initial_accumulator_value=0.1)),
    ("Adagrad", dict(lr=0.1, initial_accumulator_value=0.1, lr_decay=0.01)),
    ("SparseAdam", dict(lr=0.01)),
    ("SparseAdam", dict(lr=0.01, betas=(0.8, 0.95), eps=1e-4)),
]


def ids_of(step, n=30):
    return torch.randint(0, ROWS, (6, n // 6), generator=torch.Generator().manual_seed(step))


def loss_of(out, step):
    return (out * values(step, *out.reshape(-1, DIM).shape).view_as(out)).sum() + (out**2).mean()


@pytest.mark.parametrize("name, kwargs", OPTIMIZERS)
def test_training_is_that_of_torch(on, name, kwargs):
    ours, theirs = both(on)
    a, b = getattr(goptim, name)(godwit.parameters(ours), **kwargs), getattr(torch.optim, name)(theirs.parameters(), **kwargs)
    for step in range(40):
        for m, opt in ((ours, a), (theirs, b)):
            opt.zero_grad()
            loss = loss_of(m(ids_of(step)), step)
            loss.backward()
            opt.step()
    same(ours, theirs, 1e-4)


def test_gradients_that_are_accumulated(on):
    ours, theirs = both(on)
    a, b = goptim.Adagrad(ours, lr=0.1, initial_accumulator_value=1), torch.optim.Adagrad(theirs.parameters(), lr=0.1, initial_accumulator_value=1)
    for step in range(9):
        for m, opt in ((ours, a), (theirs, b)):
            (loss_of(m(ids_of(step)), step) / 3).backward()
            if step % 3 == 2:
                opt.step()
                opt.zero_grad()
    same(ours, theirs)


def test_a_module_that_is_called_twice_and_one_that_is_recomputed(on):
    from torch.utils.checkpoint import checkpoint

    ours, theirs = both(on)
    a, b = goptim.Adagrad(ours, lr=0.1, initial_accumulator_value=1), torch.optim.Adagrad(theirs.parameters(), lr=0.1, initial_accumulator_value=1)
    scale = torch.ones(1, requires_grad=True)
    for step in range(5):
        for m, opt in ((ours, a), (theirs, b)):
            opt.zero_grad()
            x = m(ids_of(step)) * m(ids_of(step + 100))
            y = checkpoint(lambda s, m=m: m(ids_of(step + 200)) * s, scale, use_reentrant=False)
            loss_of(x + y, step).backward()
            opt.step()
    same(ours, theirs)


def test_schedulers_change_the_rate(on):
    ours, theirs = both(on)
    a, b = goptim.Adagrad(ours, lr=0.5, initial_accumulator_value=1), torch.optim.Adagrad(theirs.parameters(), lr=0.5, initial_accumulator_value=1)
    assert isinstance(a, torch.optim.Optimizer)
    schedules = [torch.optim.lr_scheduler.OneCycleLR(o, 0.5, total_steps=20, cycle_momentum=False) for o in (a, b)]
    for step in range(20):
        for m, opt, s in zip((ours, theirs), (a, b), schedules):
            opt.zero_grad()
            loss_of(m(ids_of(step)), step).backward()
            opt.step()
            s.step()
    same(ours, theirs)


def test_clipping(on):
    ours, theirs = both(on)
    theirs.sparse = False  # whose gradients torch does not clip
    dense = [torch.nn.Linear(DIM, 1) for _ in range(2)]
    dense[1].load_state_dict(dense[0].state_dict())
    a, b = goptim.SGD(ours, lr=0.1), torch.optim.SGD(theirs.parameters(), lr=0.1)
    for step in range(5):
        norms = []
        for m, opt, d in ((ours, a, dense[0]), (theirs, b, dense[1])):
            opt.zero_grad()
            d.zero_grad()
            d(m(ids_of(step))).pow(2).sum().backward()
            if m is ours:
                norms.append(godwit.clip_grad_norm_([*d.parameters(), *godwit.parameters(m)], 0.5))
            else:
                norms.append(torch.nn.utils.clip_grad_norm_([*d.parameters(), *m.parameters()], 0.5))
            opt.step()
        assert torch.allclose(*norms, rtol=1e-4)
    same(ours, theirs)
    for p, q in zip(dense[0].parameters(), dense[1].parameters()):
        assert torch.allclose(p.grad, q.grad, atol=1e-5)


@pytest.mark.parametrize("norm_type", [2.0, 1, "inf"])
def test_clipping_of_a_gradient_without_rows(on, norm_type):
    m = gnn.Embedding(ROWS, DIM, padding_idx=0, cluster=on)
    goptim.SGD(m)
    m(torch.tensor([0, 0])).sum().backward()
    dense = torch.nn.Linear(2, 1)
    dense(torch.ones(2)).sum().backward()
    want = torch.nn.utils.clip_grad_norm_(list(dense.parameters()), 9, norm_type)
    assert torch.equal(godwit.clip_grad_norm_([*godwit.parameters(m), *dense.parameters()], 9, norm_type), want)
    assert godwit.clip_grad_norm_(godwit.parameters(m), 9, norm_type) == 0


def test_the_scaler_skips_steps_as_with_torch(on):
    ours, theirs = both(on)
    a, b = goptim.SGD(ours, lr=0.1), torch.optim.SGD(theirs.parameters(), lr=0.1)
    scalers = [torch.amp.GradScaler("cpu", init_scale=8.0) for _ in range(2)]
    for step in range(6):
        for m, opt, scaler in zip((ours, theirs), (a, b), scalers):
            opt.zero_grad()
            loss = loss_of(m(ids_of(step)), step)
            scaler.scale(loss * (float("inf") if step == 3 else 1)).backward()
            scaler.step(opt)
            scaler.update()
    assert scalers[0].get_scale() == scalers[1].get_scale() == 4
    same(ours, theirs)
    assert on.stats()["not_finite"] == 0


@pytest.mark.filterwarnings("ignore:.*second time")
def test_a_step_waits_for_nobody_and_the_next_access_sees_it():
    with godwit.Cluster(seed=1, nodes=3, policy="static") as c:
        ours = [gnn.Embedding.from_pretrained(values(), freeze=False, cluster=c) for _ in range(3)]
        opt = goptim.SGD([m.weight for m in ours], lr=1.0)
        ids = torch.arange(ROWS)
        for step in range(1, 30):
            opt.zero_grad()
            sum(m(ids).sum() for m in ours).backward()
            opt.step()
            under_way = {h.table.name for h in c.worker._later}
            assert len(under_way) == len(c.worker._later) <= 3
            if step % 3 == 0:
                opt.step()  # of the same gradients: each table's pushes are one after the other
                for m in ours:
                    m.weight.grad = None
                c.worker.push(ours[0].table, ids, torch.ones(ROWS, DIM), rate=1.0)
                assert c.worker._later == []
        assert torch.allclose(ours[1].rows(ids), values() - 29 - 9, atol=1e-4)
        assert torch.allclose(ours[0].rows(ids), values() - 29 - 18, atol=1e-4)
        assert c.worker._later == []


def test_steps_in_order_leave_some_pushes_under_way(monkeypatch):
    ordered = True
    monkeypatch.setattr(godwit.Worker, "_in_order", lambda worker, id: ordered)
    with godwit.Cluster(seed=1, nodes=3, policy="static") as c:  # rows stay, so that accesses are in order
        ours = [gnn.Embedding.from_pretrained(values(), freeze=False, cluster=c) for _ in range(2)]
        opt = goptim.SGD([m.weight for m in ours], lr=1.0)
        ids, most = torch.arange(ROWS), 0
        for step in range(1, 30):
            opt.zero_grad()
            seen = [m(ids) for m in ours]
            for x in seen:
                assert torch.allclose(x, values() - (step - 1), atol=1e-4)
            sum(x.sum() for x in seen).backward()
            opt.step()
            of = [h.table.name for h in c.worker._later]
            most = max([most, *(of.count(name) for name in of)])
            assert all(of.count(name) <= godwit._cluster.LATER for name in of)
        assert most > 1  # else a step waited for the one before
        ordered = False
        assert torch.allclose(ours[0].rows(ids), values() - 29, atol=1e-4)
        assert c.worker._later == []


def test_gradients_that_are_not_finite_are_not_pushed_and_counted(on):
    ours, _ = both(on)
    opt = goptim.SGD(ours, lr=0.1)
    before = ours.rows(torch.arange(ROWS))
    x = ours(torch.tensor([1, 2]))
    (x * torch.tensor([[float("nan")], [1.0]])).sum().backward()
    opt.step()
    after = ours.rows(torch.arange(ROWS))
    assert (after[1] == before[1]).all() and torch.allclose(after[2], before[2] - 0.1)
    assert on.stats()["not_finite"] == 1


def test_autocast(on):
    ours, theirs = both(on)
    linear = torch.nn.Linear(DIM, 4)
    a, b = goptim.SGD(ours, lr=0.1), torch.optim.SGD(theirs.parameters(), lr=0.1)
    for step in range(4):
        for m, opt in ((ours, a), (theirs, b)):
            opt.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = linear(m(ids_of(step))).float().pow(2).mean()
            loss.backward()
            opt.step()
    same(ours, theirs)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_a_model_of_another_type_keeps_rows_in_float32(on, dtype):
    ours, theirs = both(on)
    bags, plain = both(on, "EmbeddingBag", mode="sum")
    model = torch.nn.Sequential(ours, torch.nn.Linear(DIM, 4)).to(dtype)
    opt = goptim.SGD(ours, lr=0.5)
    for step in range(3):
        out, want = ours(ids_of(step)), theirs(ids_of(step))
        assert out.dtype == dtype and torch.equal(out, want.to(dtype))
        assert torch.equal(godwit.to_torch(ours)(ids_of(step)), out)
        opt.zero_grad()
        (got,) = torch.autograd.grad(model(ids_of(step)).float().sum(), ours.weight)
        ours(ids_of(step)).float().sum().backward()
        assert got._values().dtype == torch.float32 and got._values().abs().sum() > 0
        opt.step()
        with torch.no_grad():
            theirs.weight -= 0.5 * torch.bincount(ids_of(step).reshape(-1), minlength=ROWS)[:, None]
    assert ours.rows(torch.tensor([1])).dtype == torch.float32
    ids, at = torch.tensor([1, 2, 3]), torch.tensor([0, 2])
    assert bags(ids, at).dtype == torch.float32
    weights = torch.tensor([1.0, 2.0, 0.5])
    want = plain.double()(ids, at, weights.double()) if dtype is torch.float64 else bags(ids, at, weights)
    bags.to(dtype)
    assert torch.equal(bags(ids, at, weights.to(dtype)), want.to(dtype)) and bags(ids[:0], at * 0).dtype == dtype
    assert torch.equal(bags(ids, at, weights), want.to(dtype))
    if dtype is torch.float64:
        assert torch.equal(godwit.to_torch(bags)(ids, at, weights.double()), want)
    assert bags.float()(ids, at).dtype == torch.float32


def test_a_model_that_is_compiled_trains_to_the_same_loss(on):
    ours, theirs = both(on)
    linear = torch.nn.Linear(DIM, 1)
    model = torch.nn.Sequential(ours, linear)
    compiled = torch.compile(model, backend="aot_eager")
    a, b = goptim.SGD(ours, lr=0.1), torch.optim.SGD(theirs.parameters(), lr=0.1)
    for step in range(4):
        a.zero_grad()
        b.zero_grad()
        x, y = compiled(ids_of(step)).pow(2).mean(), linear(theirs(ids_of(step))).pow(2).mean()
        assert torch.allclose(x, y, atol=1e-6)
        x.backward()
        y.backward()
        a.step()
        b.step()
    same(ours, theirs)


def test_a_model_that_is_compiled_whole_says_why_it_cannot(on):
    if "reason" not in inspect.signature(torch.compiler.disable).parameters:
        pytest.skip("this version of torch tells no reason")
    ours, _ = both(on)
    compiled = torch.compile(torch.nn.Sequential(ours, torch.nn.Linear(DIM, 1)), backend="eager", fullgraph=True)
    with pytest.raises(Exception, match="rows are read from the cluster.*fullgraph"):
        compiled(ids_of(1))


def test_padding_has_no_gradient_and_begins_as_zero(on):
    v = values()
    ours, theirs = both(on, padding_idx=3)
    a, b = goptim.SGD(ours, lr=0.1), torch.optim.SGD(theirs.parameters(), lr=0.1)
    x = torch.tensor([3, 1, 3, 2])
    for m, opt in ((ours, a), (theirs, b)):
        loss_of(m(x), 0).backward()
        opt.step()
    same(ours, theirs)
    assert (ours.rows([3]) == v[3].numpy()).all()
    fresh = gnn.Embedding(10, 2, padding_idx=-1, cluster=on)
    assert fresh.padding_idx == 9 and (fresh(torch.tensor([9])) == 0).all() and (fresh(torch.tensor([8])) != 0).all()


def test_gradients_scaled_by_frequency(on):
    ours, theirs = both(on, scale_grad_by_freq=True, padding_idx=2)
    theirs.sparse = False  # torch scales dense ones only
    a, b = goptim.SGD(ours, lr=0.1), torch.optim.SGD(theirs.parameters(), lr=0.1)
    for m, opt in ((ours, a), (theirs, b)):
        loss_of(m(torch.tensor([[1, 1, 2], [2, 1, 5]])), 0).backward()
        opt.step()
    same(ours, theirs)


def test_frozen_rows_have_no_gradient(on):
    m = gnn.Embedding.from_pretrained(values(), cluster=on)
    assert torch.equal(m(torch.tensor([[4, 4]])), values()[[4, 4]].view(1, 2, DIM)) and not m(torch.tensor([1])).requires_grad


def test_without_gradient_nothing_is_left(on):
    ours, _ = both(on)
    opt = goptim.SGD(ours, lr=0.1)
    with torch.no_grad():
        ours(ids_of(0))
    ours.eval()
    ours(ids_of(0))
    assert ours.weight.grad is None
    opt.step()
    same(ours, torch.nn.Embedding.from_pretrained(values()))


def test_gradients_that_are_pushed_twice_are_told(on):
    ours, _ = both(on)
    opt = goptim.SGD(ours, lr=0.1)
    model = torch.nn.Sequential(ours)
    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter("always")
        for _ in range(2):
            model.zero_grad()
            model(ids_of(0)).sum().backward()
            opt.step()
    assert any("zero_grad" in str(x.message) for x in w)


def test_gradients_that_nobody_pushes_are_told(on):
    def told(optimizer, steps):
        rows = gnn.Embedding(ROWS, DIM, cluster=on)
        model = torch.nn.Sequential(rows, torch.nn.Linear(DIM, 1))
        if optimizer:
            goptim.SGD(rows)
        with warnings.catch_warnings(record=True) as w:
            warnings.simplefilter("always")
            for _ in range(steps):
                model.zero_grad()
                (model(ids_of(0)) + model(ids_of(1))).sum().backward()
        return sum(f"table {rows.table.name!r} has no optimizer" in str(x.message) for x in w)

    assert (told(True, 3), told(False, 1), told(False, 3)) == (0, 0, 1)


def test_an_optimizer_without_rows_says_where_they_are(on):
    model = torch.nn.Sequential(gnn.Embedding(ROWS, DIM, cluster=on))
    for none in (model.parameters(), godwit.parameters(torch.nn.Linear(1, 1))):
        with pytest.raises(ValueError, match=r"godwit\.parameters\(model\)"):
            goptim.SGD(none)


def test_gradients_that_are_set_to_zero_are_not_pushed_twice(on):
    ours, theirs = both(on)
    a, b = goptim.SGD(ours, lr=0.1), torch.optim.SGD(theirs.parameters(), lr=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in range(3):
            for m, opt in ((ours, a), (theirs, b)):
                opt.zero_grad(set_to_none=False)
                loss_of(m(ids_of(step)), step).backward()
                opt.step()
    same(ours, theirs)


BAGS = [
    dict(mode="sum"),
    dict(mode="mean"),
    dict(mode="max"),
    dict(mode="sum", padding_idx=3),
    dict(mode="mean", padding_idx=3),
    dict(mode="max", padding_idx=3),
    dict(mode="mean", include_last_offset=True),
]


@pytest.mark.parametrize("kwargs", BAGS, ids=str)
def test_bags(on, kwargs):
    ours, theirs = both(on, "EmbeddingBag", **kwargs)
    a, b = goptim.SGD(ours, lr=0.1), torch.optim.SGD(theirs.parameters(), lr=0.1)
    x = torch.tensor([1, 3, 3, 7, 1, 9, 3, 0, 2])
    offsets = torch.tensor([0, 0, 3, 8, 9][: 5 if kwargs.get("include_last_offset") else 4])
    for step in range(3):
        out = []
        for m, opt in ((ours, a), (theirs, b)):
            opt.zero_grad()
            y = m(x + step, offsets)
            out.append(y)
            loss_of(y, step).backward()
            opt.step()
        assert torch.allclose(*out, atol=1e-6)
    assert torch.allclose(ours(ids_of(1)), theirs(ids_of(1)), atol=1e-6)
    same(ours, theirs)


def test_bags_with_weights(on):
    ours, theirs = both(on, "EmbeddingBag", mode="sum")
    weights = [torch.linspace(-1, 2, 9, requires_grad=True) for _ in range(2)]
    a, b = goptim.SGD(ours, lr=0.1), torch.optim.SGD(theirs.parameters(), lr=0.1)
    x, offsets = torch.tensor([1, 3, 3, 7, 1, 9, 3, 0, 2]), torch.tensor([0, 2, 2, 5])
    for m, opt, w in zip((ours, theirs), (a, b), weights):
        loss_of(m(x, offsets, w), 0).backward()
        opt.step()
    assert torch.allclose(weights[0].grad, weights[1].grad, atol=1e-5)
    same(ours, theirs)


def test_bags_without_ids(on):
    m = gnn.EmbeddingBag(10, 3, cluster=on)
    empty = torch.zeros(0, dtype=torch.int64)
    assert m(empty, torch.tensor([0, 0])).tolist() == [[0] * 3] * 2 and m(empty.view(4, 0)).shape == (4, 3)
    assert gnn.Embedding(10, 3, cluster=on)(empty.view(0, 2)).shape == (0, 2, 3)


@pytest.mark.parametrize("mode, shape, bags", [("sum", (0,), 2), ("mean", (0,), 2), ("max", (0,), 0), ("sum", (0, 3), None), ("mean", (0, 3), None), ("sum", (4, 0), None)])
def test_bags_without_ids_have_a_gradient_as_torchs(on, mode, shape, bags):
    m = gnn.EmbeddingBag(ROWS, DIM, mode=mode, cluster=on)
    opt = goptim.Adagrad(m)
    empty, offsets = torch.zeros(shape, dtype=torch.int64), None if bags is None else torch.zeros(bags, dtype=torch.int64)
    weights = torch.ones(shape, requires_grad=True) if mode == "sum" else None
    out = m(empty, offsets, weights)
    assert out.shape == (shape[0] if bags is None else bags, DIM) and not out.any() and out.requires_grad
    out.sum().backward()
    opt.step()
    assert m.weight.grad._nnz() == 0 and (weights is None or weights.grad.shape == shape) and opt.state_dict()["state"][0]["step"] == 1
    with torch.no_grad():
        assert not m(empty, offsets).requires_grad


def test_wrong_bags_without_ids_are_refused(on):
    m, empty = gnn.EmbeddingBag(ROWS, DIM, mode="sum", cluster=on), torch.zeros(0, dtype=torch.int64)
    with pytest.raises(TypeError, match="want integers"):
        m(torch.zeros(0), torch.tensor([0]))
    for wrong in ((empty,), (empty, torch.tensor([0]), torch.ones(3))):
        with pytest.raises(ValueError, match="offsets|same shape"):
            m(*wrong)


@pytest.mark.parametrize("offsets", [torch.tensor([0, 5]), torch.tensor([-3, 0]), torch.tensor([0.0]), torch.tensor([False]), [0]])
def test_wrong_offsets_are_refused(on, offsets):
    m, empty = gnn.EmbeddingBag(ROWS, DIM, cluster=on), torch.zeros(0, dtype=torch.int64)
    with pytest.raises((TypeError, ValueError), match="offsets are"):
        m(empty, offsets)
    if isinstance(offsets, list) or offsets.dtype != torch.int64:
        with pytest.raises(TypeError, match="offsets are of type .*, want a tensor of integers"):
            m(torch.tensor([1, 2]), offsets)


class Jagged:
    def __init__(self, values, lengths):
        self._values, self._lengths = values, lengths

    def values(self):
        return self._values

    def offsets(self):
        return torch.cat([torch.zeros(1, dtype=torch.int64), self._lengths.cumsum(0)])


def test_a_collection_of_bags(on):
    m = gnn.EmbeddingBagCollection(
        [gnn.EmbeddingBagConfig(20, 4, "users", ["viewer", "author"]), gnn.EmbeddingBagConfig(30, 2, "items", ["item"], pooling="mean")], cluster=on
    )
    opt = goptim.SGD(godwit.parameters(m), lr=1.0)
    features = {
        "viewer": Jagged(torch.tensor([1, 2, 3]), torch.tensor([2, 0, 1])),
        "author": Jagged(torch.tensor([1]), torch.tensor([0, 1, 0])),
        "item": (torch.tensor([5, 5]), torch.tensor([0, 1, 2])),
    }
    users = m.embedding_bags["users"].rows(torch.arange(20))
    out = m(features)
    assert {k: tuple(v.shape) for k, v in out.items()} == {"viewer": (3, 4), "author": (3, 4), "item": (3, 2)}
    assert torch.allclose(out["viewer"][0], users[1] + users[2]) and (out["viewer"][1] == 0).all() and torch.allclose(out["author"][1], users[1])
    sum(v.sum() for v in out.values()).backward()
    opt.step()
    users[1] -= 2
    users[[2, 3]] -= 1
    assert torch.allclose(m.embedding_bags["users"].rows(torch.arange(20)), users, atol=1e-6)


@pytest.mark.parametrize(
    "feature, text",
    [
        (torch.tensor([1, 2]), "feature 'f' is a Tensor, want"),
        ((torch.tensor([1, 2]),), "feature 'f' is a tuple, want"),
        ((torch.tensor([1, 2]), torch.tensor([0]), torch.ones(2), 1), "feature 'f' is a tuple, want"),
        ((torch.tensor([1, 2]), torch.tensor([0])), "feature 'f' has no weights"),
        (Jagged(torch.tensor([1, 2]), torch.tensor([2])), "feature 'f' has no weights"),
    ],
)
def test_what_is_no_feature_of_a_collection(on, feature, text):
    m = gnn.EmbeddingBagCollection([gnn.EmbeddingBagConfig(20, 4, "t", ["f"])], is_weighted=True, cluster=on)
    with pytest.raises((TypeError, ValueError), match=text):
        m({"f": feature})


def test_a_configuration_of_a_collection(on):
    config = gnn.EmbeddingBagConfig(20, 4, "t", ["f"])
    assert "num_embeddings=20" in repr(config) and config == gnn.EmbeddingBagConfig(20, 4, "t", ["f"], pooling="sum")
    with pytest.raises(ValueError, match="feature_names='viewer', want a list"):
        gnn.EmbeddingBagCollection([gnn.EmbeddingBagConfig(20, 4, "t", "viewer")], cluster=on)


def test_a_collection_is_that_of_torchrec(on):
    try:
        import torchrec
    except (ImportError, OSError) as e:  # it wants one version of torch
        pytest.skip(f"torchrec cannot be imported: {e}")
    tables = [torchrec.EmbeddingBagConfig(name="u", embedding_dim=4, num_embeddings=20, feature_names=["viewer", "author"])]
    theirs = torchrec.EmbeddingBagCollection(tables=tables, is_weighted=True, device=torch.device("cpu"))
    ours = gnn.EmbeddingBagCollection(tables, is_weighted=True, cluster=on)
    ours.load_state_dict(theirs.state_dict())
    opts = [goptim.SGD(godwit.parameters(ours), lr=0.5), torch.optim.SGD(theirs.parameters(), lr=0.5)]
    x = torchrec.KeyedJaggedTensor(
        keys=["viewer", "author"], values=torch.tensor([1, 2, 3, 1, 5]), lengths=torch.tensor([2, 0, 1, 0, 1, 1]), weights=torch.linspace(0.1, 1, 5)
    )
    out = [m(x) for m in (ours, theirs)]
    assert type(out[0]) is type(out[1]) and out[0].keys() == out[1].keys() and torch.allclose(out[0].values(), out[1].values())
    for y, opt in zip(out, opts):
        y.values().pow(2).sum().backward()
        opt.step()
    a, b = ours.state_dict(), theirs.state_dict()
    assert list(a) == list(b) and all(torch.allclose(a[k], b[k], atol=1e-6) for k in a)


def test_the_result_is_keyed_where_the_input_is_of_a_library_that_has_keyed_tensors(on, monkeypatch):
    class KeyedTensor:
        def __init__(self, keys, length_per_key, values):
            self.keys, self.lengths, self.values = keys, length_per_key, values

    class KeyedJagged(dict):
        pass

    library = types.ModuleType("jagged")
    library.KeyedTensor, KeyedJagged.__module__ = KeyedTensor, "jagged"
    monkeypatch.setitem(sys.modules, "jagged", library)
    m = gnn.EmbeddingBagCollection([gnn.EmbeddingBagConfig(9, 4, "t", ["a"]), gnn.EmbeddingBagConfig(9, 2, "u", ["b"])], cluster=on)
    x = {f: (torch.tensor([1, 2, 3]), torch.tensor([0, 1])) for f in "ab"}
    plain, keyed = m(x), m(KeyedJagged(x))
    assert (keyed.keys, keyed.lengths) == (["a", "b"], [4, 2]) and torch.equal(keyed.values, torch.cat([plain["a"], plain["b"]], 1))


def test_a_state_dict_is_one_of_torch(on):
    ours, theirs = torch.nn.Sequential(gnn.Embedding(ROWS, DIM, cluster=on)), torch.nn.Sequential(torch.nn.Embedding(ROWS, DIM))
    opt = goptim.SGD(godwit.parameters(ours), lr=0.1)
    ours.load_state_dict(theirs.state_dict())
    same(ours[0], theirs[0], 0)
    ours(ids_of(1)).sum().backward()
    opt.step()
    file = io.BytesIO()
    torch.save(ours.state_dict(), file)
    file.seek(0)
    theirs.load_state_dict(torch.load(file))
    same(ours[0], theirs[0], 0)
    ours.load_state_dict(theirs.state_dict())
    with pytest.raises(RuntimeError, match="shape"):
        ours.load_state_dict({"0.weight": torch.zeros(3, DIM)})
    with pytest.raises(RuntimeError, match="0.weight: values are of type ndarray, want a tensor"):
        ours.load_state_dict({"0.weight": np.zeros((ROWS, DIM))})
    with pytest.raises(RuntimeError, match="0.weight"):
        ours.load_state_dict({})


def test_what_is_loaded_does_not_follow_the_callers_tensors(on):
    theirs = torch.nn.Embedding(ROWS, DIM, sparse=True)
    b = torch.optim.Adagrad(theirs.parameters(), initial_accumulator_value=0.5)
    ours, pretrained = gnn.Embedding(ROWS, DIM, cluster=on), gnn.Embedding.from_pretrained(theirs.weight, cluster=on)
    a = goptim.Adagrad(ours)
    ours.load_state_dict(theirs.state_dict())
    a.load_state_dict(b.state_dict())
    want = theirs.weight.detach().clone()
    theirs(ids_of(0)).sum().backward()
    b.step()
    assert torch.equal(ours(torch.arange(ROWS)), want) and torch.equal(pretrained(torch.arange(ROWS)), want)
    assert (a.state_dict()["state"][0]["sum"] == 0.5).all()


def test_what_does_not_fit_into_a_state_dict_is_refused(on):
    m = gnn.Embedding(10**9, 64, cluster=on)
    assert m.weight.shape == (10**9, 64) and m(torch.tensor([10**9 - 1])).shape == (1, 64)
    with pytest.raises(ValueError, match="MiB"):
        m.state_dict()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda m: goptim.SGD(m, lr=-1),
        lambda m: goptim.SGD(m, momentum=0.9),
        lambda m: goptim.SGD(m, weight_decay=0.1),
        lambda m: goptim.Adagrad(m, eps=-1),
        lambda m: goptim.Adagrad(m, weight_decay=1),
        lambda m: goptim.SparseAdam(m, betas=(1.0, 0.9)),
        lambda m: goptim.Adam(m, amsgrad=True),
        lambda m: goptim.SGD([torch.zeros(1)]),
        lambda m: goptim.SGD([]),
        lambda m: goptim.SGD([m, goptim.SGD(m) and m]),
        lambda m: m(torch.tensor([0.5])),
        lambda m: m(torch.tensor([ROWS])),
        lambda m: m([1, 2]),
        lambda m: gnn.Embedding(ROWS, DIM, max_norm=1.0, cluster=m.table.cluster),
        lambda m: gnn.Embedding(ROWS, DIM, padding_idx=ROWS, cluster=m.table.cluster),
        lambda m: gnn.Embedding(ROWS, DIM, padding_idx=1.5, cluster=m.table.cluster),
        lambda m: gnn.Embedding(ROWS, DIM, dtype=torch.float16, cluster=m.table.cluster),
        lambda m: gnn.EmbeddingBag(ROWS, DIM, mode="min", cluster=m.table.cluster),
        lambda m: setattr(m, "weight", torch.nn.Parameter(torch.zeros(1))),
        lambda m: copy.deepcopy(m),
        lambda m: copy.deepcopy(m.weight),
        lambda m: pickle.dumps(m),
        lambda m: pickle.dumps(m.weight),
    ],
)
def test_what_is_not_supported_raises(on, wrong):
    with pytest.raises((ValueError, TypeError, IndexError, AttributeError, KeyError)):
        wrong(gnn.Embedding(ROWS, DIM, cluster=on))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("make", [gnn.Embedding, gnn.EmbeddingBag, lambda *a, **k: gnn.Embedding(*a, scale_grad_by_freq=True, **k)])
def test_a_row_that_is_none_is_told_by_its_position_in_the_input(on, make, training):
    m = make(ROWS, DIM, cluster=on).train(training)
    with pytest.raises(IndexError, match=f"row {ROWS} at position 4"):
        m(torch.tensor([[3, 3, 3], [3, ROWS, 3]]))


def test_names_that_are_made_up_are_new(on):
    gnn.Embedding(ROWS, DIM, name="Embedding-1", cluster=on)
    modules = [gnn.Embedding(ROWS, DIM, cluster=on), gnn.Embedding(ROWS, DIM, cluster=on)]
    bad = gnn.Embedding(ROWS, DIM, cluster=on)
    bad.table.begin(rule="nonsense")
    modules.append(gnn.Embedding(ROWS, DIM, cluster=on))
    with pytest.raises(ValueError, match="nonsense"):
        modules[0](torch.tensor([1]))  # the table that cannot begin is none any more
    modules.append(gnn.Embedding(ROWS, DIM, cluster=on))
    linear = [godwit.dense(torch.nn.Linear(2, 2), cluster=on) for _ in range(2)]
    assert len({x.table.name for x in (*modules, *linear)}) == 6
    assert all(m(torch.tensor([1])).shape == (1, DIM) for m in modules)


def test_an_optimizer_after_the_first_forward_is_refused(on):
    m = gnn.Embedding(ROWS, DIM, cluster=on)
    m(torch.tensor([1]))
    with pytest.raises(ValueError, match="before the first forward"):
        goptim.SGD(m)


def test_an_optimizer_that_is_refused_leaves_tables_as_they_were(on):
    started = gnn.Embedding(ROWS, DIM, cluster=on)
    started(torch.tensor([1]))
    m, other = (gnn.Embedding(ROWS, DIM, cluster=on) for _ in range(2))
    for wrong in ([m, started], [{"params": m}, {"params": started}], [{"params": m}, {"params": other, "lr": -1}]):
        with pytest.raises(ValueError):
            goptim.Adagrad(wrong)
        assert m.table.rule == "add"
    opt = goptim.SGD(m)
    with pytest.raises(ValueError, match="before the first forward"):
        opt.add_param_group({"params": [other, started]})
    goptim.Adagrad(other)


def test_the_rule_does_not_change_but_the_rate(on):
    m = gnn.Embedding(ROWS, DIM, cluster=on)
    opt = goptim.Adagrad(m, lr=0.1)
    opt.param_groups[0]["eps"] = 1.0
    m(torch.tensor([1])).sum().backward()
    with pytest.raises(ValueError, match="only the rate"):
        opt.step()
    opt = goptim.Adam(gnn.Embedding(ROWS, DIM, cluster=on), lr=0.1)
    torch.optim.lr_scheduler.OneCycleLR(opt, 0.1, total_steps=10)
    with pytest.raises(ValueError, match="cycle_momentum=False"):
        opt.step()


def test_what_is_clipped_are_parameters(on):
    m = torch.nn.Sequential(gnn.Embedding(ROWS, DIM, cluster=on))
    with pytest.raises(TypeError, match=r"godwit.parameters\(model\)"):
        godwit.clip_grad_norm_(m, 1.0)
    assert godwit.clip_grad_norm_(godwit.parameters(m), 1.0, foreach=False) == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda m, one: goptim.Adagrad(m, eps=one * 1e-8, initial_accumulator_value=one),
        lambda m, one: goptim.SparseAdam(m, betas=(one * 0.9, one * 0.99), eps=one),
        lambda m, one: goptim.Adam(m, betas=(one * 0.9, one * 0.99), eps=one),
    ],
)
@pytest.mark.parametrize("one", [np.float64(1), np.float32(1), torch.ones(())], ids=["float64", "float32", "tensor"])
def test_numbers_of_numpy_and_torch_make_a_rule(on, make, one):
    m = gnn.Embedding(ROWS, DIM, cluster=on)
    opt = make(m, one)
    before = m.rows([1])
    m(torch.tensor([1])).sum().backward()
    opt.step()
    assert (m.rows([1]) != before).any()


def test_rows_are_no_parameters_of_the_model(on):
    m = torch.nn.Sequential(gnn.Embedding(10**9, 64, cluster=on), torch.nn.Linear(64, 1))
    assert len(list(m.parameters())) == 2 and [w.shape for w in godwit.parameters(m)] == [(10**9, 64)]
    m.double()
    m.to("cpu")
    assert "Embedding(1000000000, 64)" in repr(m) and "Weight" in repr(m[0].weight)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="THERE IS NO GPU: the output on a GPU is not tested")
def test_ids_on_a_gpu(on):
    ours, theirs = both(on)
    opt = goptim.SGD(ours, lr=0.1)
    out = ours(ids_of(0).cuda())
    assert out.is_cuda and torch.equal(out.cpu(), theirs(ids_of(0)))
    out.sum().backward()
    opt.step()


@pytest.mark.parametrize(
    "loss",
    [
        lambda y, w: y.sum(),
        lambda y, w: (y.sum(1) * w).sum(),
        lambda y, w: (y.mean(0) * w[0]).sum(),
        lambda y, w: (y.transpose(1, 2) * y.transpose(1, 2)).sum(),
        lambda y, w: y[:, 1:3].sum() + y.sum(2).pow(2).sum(),
        lambda y, w: y[:0].sum(),
    ],
    ids=["expanded", "a bag's", "expanded bags", "transposed", "parts", "zeros"],
)
@pytest.mark.parametrize("padding_idx", [None, 3])
def test_gradients_of_any_strides_are_summed_by_row(on, loss, padding_idx):
    ours, theirs = both(on, padding_idx=padding_idx)
    opts = [goptim.Adagrad(ours, lr=0.1), torch.optim.Adagrad(theirs.parameters(), lr=0.1)]
    g = torch.Generator().manual_seed(3)
    for i in range(3):
        ids, w = torch.randint(ROWS, (6, 5), generator=g), torch.randn(6, DIM, generator=g)
        for m, opt in zip((ours, theirs), opts):
            opt.zero_grad()
            for _ in range(1 + (i == 1)):  # a second backward adds to the first
                loss(m(ids), w).backward()
            opt.step()
        assert torch.allclose(ours.weight.grad.coalesce().to_dense(), theirs.weight.grad.coalesce().to_dense(), atol=1e-5)
    same(ours, theirs)


def test_a_gradient_put_in_place_of_that_of_backward_is_pushed_whole(on):
    ours, theirs = both(on)
    ids = torch.tensor([4, 5, 4])
    for m, opt in ((ours, goptim.SGD(ours, lr=0.5)), (theirs, torch.optim.SGD(theirs.parameters(), lr=0.5))):
        m(ids).sum().backward()
        m.weight.grad = torch.sparse_coo_tensor(torch.tensor([[7, 7]]), torch.ones(2, DIM), (ROWS, DIM))
        opt.step()
    same(ours, theirs)


@pytest.mark.parametrize(
    "use",
    [
        lambda w: torch.nn.init.normal_(w),
        lambda w: w.data,
        lambda w: w[3],
        lambda w: w.norm(),
        lambda w: w + 1,
        lambda w: torch.nn.functional.linear(torch.ones(1, DIM), w),
        lambda w: w.add_(1),
    ],
)
def test_what_would_read_or_change_a_weight_says_what_to_do(on, use):
    module, _ = both(on)
    module(torch.tensor([1])).sum().backward()
    with pytest.raises(godwit.errors.ArgumentError, match=r"of embedding.weight: .*rows\(ids\) reads rows"):
        use(module.weight)


@pytest.mark.parametrize(
    "make",
    [
        lambda w: torch.optim.SGD([w], lr=0.1),
        lambda w: torch.optim.Adam([{"params": [w]}]),
        lambda w: torch.optim.SparseAdam(iter([w])),
        lambda w: torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1).add_param_group({"params": w}),
    ],
)
def test_an_optimizer_of_torch_is_refused_when_it_is_made(on, make):
    module, _ = both(on)
    with pytest.raises(godwit.errors.ArgumentError, match="give godwit.parameters.model. to one of godwit.optim"):
        make(module.weight)
    goptim.SGD(godwit.parameters(module), lr=0.1)  # which can have it after that
    with pytest.raises(godwit.errors.ArgumentError, match="give godwit.parameters.model. to one of godwit.optim"):
        make(module.weight)


def test_what_a_weight_tells(on):
    module, _ = both(on)
    w = module.weight
    assert (w.shape, len(w), w.numel(), w.dtype, w.device.type, w.is_leaf, w.grad) == ((ROWS, DIM), ROWS, ROWS * DIM, torch.float32, "cpu", True, None)
    (grad,) = torch.autograd.grad(module(torch.tensor([1, 1])).sum(), w)
    assert grad.to_dense()[1].tolist() == [2.0] * DIM
    with pytest.raises(AttributeError, match="load_state_dict or from_pretrained"):
        module.weight = torch.nn.Parameter(torch.ones(ROWS, DIM))
    with pytest.raises(godwit.errors.ArgumentError, match="embedding.weight"):  # weights that are tied
        decoder = torch.nn.Linear(DIM, ROWS, bias=False)
        decoder.weight = w
        decoder(torch.ones(1, DIM))


def test_a_module_is_frozen_as_torchs(on):
    module, theirs = both(on)
    for m in (module, theirs):
        m.requires_grad_(False)
        assert not m.weight.requires_grad and not m(torch.tensor([1])).requires_grad
        m.requires_grad_(True)
        assert m(torch.tensor([1])).requires_grad


@pytest.mark.parametrize("default", [torch.float64, torch.bfloat16])
def test_the_default_type_is_that_of_outputs(on, default):
    before = torch.get_default_dtype()
    torch.set_default_dtype(default)
    try:
        module = gnn.EmbeddingBag(ROWS, DIM, padding_idx=0, cluster=on)
        optimizer = goptim.Adagrad(module, lr=0.1)
        out = torch.nn.Linear(DIM, 1)(module(torch.tensor([[1, 0], [2, 3]])))
        assert out.dtype == default
        out.sum().backward()
        optimizer.step()
        module.load_state_dict(module.state_dict())
        optimizer.load_state_dict(optimizer.state_dict())
        assert module.state_dict()["weight"].dtype == torch.float32
    finally:
        torch.set_default_dtype(before)


def test_the_type_of_outputs_outlasts_a_change_of_device(on):
    module = gnn.Embedding(ROWS, DIM, cluster=on).half()
    assert module.to("cpu")(torch.tensor([1])).dtype == torch.float16


def test_the_default_device_is_not_that_of_rows(on):
    ids = torch.tensor([1, 2, 0, 1])
    torch.set_default_device("meta")  # has no values
    try:
        module = gnn.Embedding(ROWS, DIM, padding_idx=0, cluster=on)
        optimizer = goptim.Adagrad(module, lr=0.1)
        before = module.rows(ids)
        module(ids).sum().backward()
        optimizer.step()
        module.load_state_dict(module.state_dict())
        optimizer.load_state_dict(optimizer.state_dict())
        godwit.to_torch(module)
        assert torch.allclose(module.rows(ids), before - 0.1 * (ids != 0).unsqueeze(1).float())
    finally:
        torch.set_default_device(None)


@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("kind", ["Embedding", "EmbeddingBag"])
def test_evaluation_makes_no_rows(nodes, kind):
    rows, dim = 100_000, 64
    with godwit.Cluster(seed=1, nodes=nodes) as c, godwit.Cluster(seed=1, nodes=nodes) as other:
        module, same = (getattr(gnn, kind)(rows, dim, name="t", init=godwit.uniform(-1, 1), cluster=x) for x in (c, other))
        trained = torch.arange(0, 3000, 7).unsqueeze(1)
        for m in (module, same):
            optimizer = goptim.Adagrad(m, lr=0.1)
            m(trained).sum().backward()
            optimizer.step()
        before, all = memory(), torch.arange(rows).unsqueeze(1)
        with torch.no_grad():
            a = [float(module(ids).detach().sum()) for ids in all.split(2000)]
        module.eval()
        b = [float(module(ids).detach().sum()) for ids in all.split(2000)]
        for ids in all.split(2000):
            module.rows(ids)
        state = [float(c.worker.state(module.table, ids).sum()) for ids in all.split(2000)]
        assert memory() - before < rows * dim * 4 / 3  # bytes of rows, with what the rule keeps as much again
        want = [float(same(ids).detach().sum()) for ids in all.split(2000)]  # makes them all
        assert memory() - before > rows * dim * 4
        assert a == want and b == want
        assert state == [float(other.worker.state(same.table, ids).sum()) for ids in all.split(2000)]


def memory():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("device", ["cuda", "meta", torch.device("cuda", 1)])
def test_a_device_that_has_no_rows_is_refused(on, device):
    config = gnn.EmbeddingBagConfig(20, 4, "t", ["f"])
    for make in (
        lambda d: gnn.Embedding(ROWS, DIM, device=d, cluster=on),
        lambda d: gnn.EmbeddingBag(ROWS, DIM, device=d, cluster=on),
        lambda d: gnn.EmbeddingBagCollection([config], device=d, cluster=on),
    ):
        with pytest.raises(ValueError, match=f"device={device} is not supported: the rows of the cluster are in the memory of its processes"):
            make(device)
        make("cpu")


def test_what_would_copy_or_trace_rows_names_to_torch(on):
    model = torch.nn.Sequential(gnn.Embedding(ROWS, DIM, cluster=on), torch.nn.Linear(DIM, 1))
    ids = torch.tensor([1, 2])
    for act in (
        lambda: copy.deepcopy(model),
        lambda: copy.deepcopy(model[0].weight),
        lambda: torch.jit.script(model),
        lambda: torch.jit.trace(model, ids),
        lambda: torch.fx.symbolic_trace(model),
        lambda: torch.export.export(model, (ids,)),
    ):
        with pytest.raises((TypeError, ValueError), match=r"godwit\.to_torch\(model\)"):
            act()
