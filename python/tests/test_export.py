"""Models without a cluster, and rows of ids."""

import numpy as np
import pytest

import godwit

torch = pytest.importorskip("torch", reason="torch is not installed")

from godwit import nn as gnn  # noqa: E402


class Model(torch.nn.Module):
    def __init__(self, c):
        super().__init__()
        self.users = gnn.Embedding(1000, 4, padding_idx=7, name="users", cluster=c)
        self.tags = gnn.EmbeddingBag(500, 3, mode="sum", padding_idx=2, cluster=c)
        self.top = torch.nn.Linear(7, 1)

    def forward(self, users, tags, offsets):
        return self.top(torch.cat([self.users(users), self.tags(tags, offsets)], 1))


INPUT = torch.tensor([5, 7, 900]), torch.tensor([1, 2, 2, 499, 30, 1]), torch.tensor([0, 2, 3])


@pytest.mark.parametrize("ids", [{}, {"users": INPUT[0]}, {"users": [900, 5, 7, 8], "tags": [1, 499, 30]}], ids=["all", "some", "some of both"])
def test_a_plain_model_has_equal_outputs(ids):
    with godwit.Cluster(seed=1) as c:
        m = Model(c)
        want = m(*INPUT).detach()
        plain = godwit.to_torch(m, ids=ids)
    assert not any(isinstance(x, gnn._Module) for x in plain.modules())
    assert torch.equal(plain(*INPUT), want)
    if ids:
        assert not plain.users(torch.tensor([6, 999])).any() and len(plain.users.ids) < 10
    else:
        assert list(plain.state_dict()) == ["users.weight", "tags.weight", "top.weight", "top.bias"]


def test_a_plain_model_is_exported():
    with godwit.Cluster(seed=1) as c:
        m = Model(c)
        want = m(*INPUT).detach()
        plain = godwit.to_torch(m, ids={m.users: INPUT[0]}).eval()
    assert torch.equal(torch.export.export(plain, INPUT).module()(*INPUT), want)


@pytest.mark.parametrize("ids", [{}, {"users": INPUT[0]}], ids=["all", "some"])
def test_a_plain_model_is_exported_to_onnx(ids, tmp_path):
    for name in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    import onnxruntime

    with godwit.Cluster(seed=1) as c:
        m = Model(c)
        plain = godwit.to_torch(m, ids=ids).eval()
    torch.onnx.export(plain, INPUT, str(tmp_path / "m.onnx"), dynamo=True, verbose=False)
    s = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    for users in (INPUT[0], torch.tensor([900, 900, 6])):
        x = (users, *INPUT[1:])
        got = s.run(None, {i.name: v.numpy() for i, v in zip(s.get_inputs(), x)})[0]
        assert np.allclose(got, plain(*x).detach().numpy(), atol=1e-6)


def test_rows_and_plain_models_are_saved_by_safetensors(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    with godwit.Cluster(seed=1) as c:
        m = Model(c)
        want = m(*INPUT).detach()
        safetensors.save_file(m.state_dict(), str(tmp_path / "rows"))
        plain, other = godwit.to_torch(m), godwit.to_torch(m)
    for p in (*plain.parameters(), *other.parameters()):
        p.data.zero_()
    plain.load_state_dict(safetensors.load_file(str(tmp_path / "rows")))
    assert torch.equal(plain(*INPUT), want)
    safetensors.save_model(plain, str(tmp_path / "plain"))
    safetensors.load_model(other, str(tmp_path / "plain"))
    assert torch.equal(other(*INPUT), want)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 100])
def test_some_rows_are_found_by_their_ids_and_no_others(n):
    every = torch.randperm(300, generator=torch.Generator().manual_seed(n))
    ids = every[:n].sort().values
    some = godwit._export.SomeRows(ids, torch.nn.Embedding.from_pretrained(torch.cat([ids[:, None] + 1.0, torch.zeros(1, 1)])))
    x = torch.arange(-2, 302)
    assert torch.equal(some(x)[:, 0], torch.where(torch.isin(x, ids), x + 1.0, 0.0))
    assert torch.equal(some(x.int()), some(x))


def test_frozen_rows_stay_frozen_in_a_plain_model():
    with godwit.Cluster() as c:
        for kind in (gnn.Embedding, gnn.EmbeddingBag):
            for freeze in (True, False):
                m = kind.from_pretrained(torch.randn(5, 2), freeze=freeze, cluster=c)
                assert [p.requires_grad for plain in (godwit.to_torch(m), godwit.to_torch(m, {m: [1, 3]})) for p in plain.parameters()] == [not freeze] * 2


def test_a_collection_without_a_cluster():
    with godwit.Cluster() as c:
        m = gnn.EmbeddingBagCollection([gnn.EmbeddingBagConfig(20, 4, "t", ["f"])], cluster=c)
        x = {"f": (torch.tensor([1, 2, 3]), torch.tensor([0, 1]))}
        want = m(x)["f"].detach()
        assert torch.equal(godwit.to_torch(m)(x)["f"], want)
        with pytest.raises(ValueError, match="no module"):
            godwit.to_torch(m, ids={"u": [1]})
        with pytest.raises(ValueError, match="state_dict holds"):
            godwit.to_torch(gnn.Embedding(10**9, 4, cluster=c))


def test_rows_of_ids():
    ids = np.arange(-5, 20000, dtype=np.int64)
    for rows in (1, 7, 10**6, 2**32 + 1, 2**48):
        got = godwit.rows_of(ids, rows)
        exact = [int(h) * rows >> 64 for h in godwit._ids._mixed(ids[:50].astype(np.uint64), 0)]
        assert got.min() >= 0 and got.max() < rows and got[:50].tolist() == exact
    counts = np.bincount(godwit.rows_of(ids, 10, salt=3), minlength=10)
    assert counts.min() > 1800 and counts.max() < 2200
    assert (godwit.rows_of(ids, 10**6) != godwit.rows_of(ids, 10**6, salt=1)).mean() > 0.99
    assert godwit.rows_of(torch.tensor([[1, 2]]), 100).tolist() == [godwit.rows_of([1, 2], 100).tolist()]
    assert godwit.rows_of(["é", "é"], 100).tolist()[0] == godwit.rows_of("é", 100)
    for wrong in (lambda: godwit.rows_of([1.5], 10), lambda: godwit.rows_of([1], 0), lambda: godwit.rows_of([None], 3), lambda: godwit.rows_of([1], 3, salt=-1)):
        with pytest.raises((ValueError, TypeError)):
            wrong()
    for mixed in (["a", 1], [1, "a"], ["a", 1.5], [True]):
        with pytest.raises(TypeError, match="an id is of type"):
            godwit.rows_of(mixed, 10)


def test_rows_of_ids_that_numpy_has_no_type_for():
    rows = 10**9
    plain = godwit.rows_of([17, -1, 2**63], rows).tolist()
    assert plain == [godwit.rows_of([x], rows)[0] for x in (17, 2**64 - 1, 2**63)]
    assert godwit.rows_of([2**64 + 17, -(2**64) - 1], rows).tolist() == plain[:2]
    assert godwit.rows_of(np.array([17, np.int64(-1)], dtype=object), np.int64(rows), salt=np.int64(0)).tolist() == plain[:2]
    a, nul = godwit.rows_of(["a", "a\0"], rows)
    assert a != nul and [a, nul] == godwit.rows_of(np.array(["a", "a\0"], dtype=object), rows).tolist()
    if strings := getattr(getattr(np, "dtypes", None), "StringDType", None):
        assert godwit.rows_of(np.array(["a", "b"], dtype=strings()), rows).tolist() == godwit.rows_of(["a", "b"], rows).tolist()


@pytest.mark.parametrize("ids", [[1.7], torch.ones(9, dtype=torch.bool), np.ones(9, dtype=bool)])
def test_what_is_no_row_of_a_plain_model(ids):
    with godwit.Cluster() as c:
        m = gnn.Embedding(9, 4, cluster=c)
        with pytest.raises(TypeError, match="want integers"):
            godwit.to_torch(m, ids={m: ids})
