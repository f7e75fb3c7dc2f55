"""Dense parameters in a table."""

import copy

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import godwit  # noqa: E402


def net():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(40, 30), torch.nn.ReLU(), torch.nn.Linear(30, 1))


def train(model, opt, steps, begin=0):
    for step in range(begin, begin + steps):
        opt.zero_grad()
        model(torch.randn(16, 40, generator=torch.Generator().manual_seed(step))).pow(2).mean().backward()
        opt.step()


def same(a, b):
    return all(torch.allclose(x, y, atol=1e-5) for x, y in zip(a.parameters(), b.parameters()))


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("name, kwargs", [("SGD", {}), ("Adagrad", dict(initial_accumulator_value=0.1)), ("Adam", {})])
def test_dense_parameters_train_as_with_torch(nodes, name, kwargs):
    ours, theirs = net(), net()
    with godwit.Cluster(nodes=nodes) as c:
        a = getattr(godwit.optim, name)(godwit.dense(ours, cluster=c), lr=0.01, **kwargs)
        b = getattr(torch.optim, name)(theirs.parameters(), lr=0.01, **kwargs)
        train(ours, a, 8)
        train(theirs, b, 8)
        assert same(ours, theirs)
        model, state = copy.deepcopy(ours.state_dict()), a.state_dict()
        train(ours, a, 5, 8)
        ours.load_state_dict(model)
        a.load_state_dict(state)
        train(ours, a, 5, 8)
        train(theirs, b, 5, 8)
        assert same(ours, theirs)


def test_the_scaler_unscales_dense_parameters_and_skips_steps_as_with_torch():
    ours, theirs = net(), net()
    with godwit.Cluster() as c:
        a, b = godwit.optim.SGD(godwit.dense(ours, cluster=c), lr=0.01), torch.optim.SGD(theirs.parameters(), lr=0.01)
        scalers = [torch.amp.GradScaler("cpu", init_scale=8.0) for _ in range(2)]
        for step in range(6):
            for model, opt, scaler in zip((ours, theirs), (a, b), scalers):
                opt.zero_grad()
                for part in range(2):  # gradients that are accumulated
                    x = torch.randn(16, 40, generator=torch.Generator().manual_seed(2 * step + part))
                    scaler.scale(model(x).pow(2).mean() * (float("inf") if step == 3 else 1)).backward()
                scaler.unscale_(opt)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)  # of the module's, whose memory it is
                scaler.step(opt)
                scaler.update()
            assert same(ours, theirs), step
        assert scalers[0].get_scale() == scalers[1].get_scale() == 4


def test_what_is_not_dense_parameters():
    with godwit.Cluster() as c:
        for wrong in (torch.nn.ReLU(), net().double(), net().to("meta")):
            with pytest.raises(ValueError, match="godwit.dense"):
                godwit.dense(wrong, cluster=c)
