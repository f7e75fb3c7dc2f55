"""Dense parameters in a table."""

import copy
import gc
import threading
import weakref

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


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_parameters_without_a_gradient_are_left_alone_as_with_torch(name):
    ours, theirs = net(), net()
    with godwit.Cluster() as c:
        a = getattr(godwit.optim, name)(godwit.dense(ours, cluster=c), lr=0.01)
        b = getattr(torch.optim, name)(theirs.parameters(), lr=0.01)
        for frozen in ((), (0,), (0, 2), (), (2,)):
            for model, opt in ((ours, a), (theirs, b)):
                for i in (0, 2):
                    model[i].weight.requires_grad_(i not in frozen)
                train(model, opt, 3)
            assert same(ours, theirs), frozen


@pytest.mark.parametrize("set_to_none", [False, True])
def test_gradients_that_are_set_to_zero_are_pushed_as_with_torch(set_to_none):
    ours, theirs = net(), net()
    with godwit.Cluster() as c:
        a = godwit.optim.Adam(godwit.dense(ours, cluster=c), lr=0.01)
        b = torch.optim.Adam(theirs.parameters(), lr=0.01)
        for model, opt in ((ours, a), (theirs, b)):
            train(model, opt, 3)
            opt.zero_grad(set_to_none)
            held = model[0].weight.grad
            model[2](torch.ones(4, 30)).sum().backward()  # no gradient for the first layer, which what Adam has accumulated moves if it is zero
            opt.step()
            assert held is None if set_to_none else not held.any()
        assert same(ours, theirs)


def test_gradients_that_are_accumulated_while_others_begin_to_have_some():
    ours, theirs = net(), net()
    with godwit.Cluster() as c:
        d = godwit.dense(ours, cluster=c)
        a, b = godwit.optim.SGD(d, lr=0.01), torch.optim.SGD(theirs.parameters(), lr=0.01)
        for step in range(3):
            norms = []
            for model, opt, clip, of in ((ours, a, godwit.clip_grad_norm_, [d]), (theirs, b, torch.nn.utils.clip_grad_norm_, list(theirs.parameters()))):
                opt.zero_grad()
                for i in (2, 0):
                    x = torch.randn(16, 40, generator=torch.Generator().manual_seed(step))
                    model[0].requires_grad_(i == 0)
                    model(x).pow(2).mean().backward()
                    norms.append(clip(of, 0.3))
                opt.step()
            assert torch.allclose(norms[0], norms[2]) and torch.allclose(norms[1], norms[3]) and same(ours, theirs), step


def test_gradients_that_were_not_finite_once_leave_no_trace():
    ours, theirs = net(), net()
    with godwit.Cluster() as c:
        d = godwit.dense(ours, cluster=c)
        a, b = godwit.optim.SGD(d, lr=0.01), torch.optim.SGD(theirs.parameters(), lr=0.01)
        (ours(torch.ones(1, 40)) * float("nan")).sum().backward()
        godwit.clip_grad_norm_([d], 1.0)
        for model, opt in ((ours, a), (theirs, b)):
            train(model, opt, 2)
        assert same(ours, theirs)


def test_a_copy_of_the_module_is_in_no_table():
    ours = net()
    with godwit.Cluster() as c:
        opt = godwit.optim.SGD(godwit.dense(ours, cluster=c), lr=0.01)
        early = copy.deepcopy(ours)
        early(torch.ones(1, 40))
        train(ours, opt, 1)
        late = copy.deepcopy(ours)
        with torch.no_grad():
            ours[0].weight.zero_()  # which is not written to the table
        for other in (early, late):
            other.load_state_dict(other.state_dict())
        opt.zero_grad()
        ours(torch.ones(1, 40)).sum().backward()
        opt.step()
        assert ours[0].weight.abs().sum() > 1


def test_small_parameters_do_not_leave_rows_unused():
    with godwit.Cluster() as c:
        for module, most in ((torch.nn.Sequential(*(torch.nn.BatchNorm1d(64) for _ in range(20))), 1.01), (torch.nn.Linear(512, 512), 1.01), (net(), 1.35)):
            table = godwit.dense(module, cluster=c).table
            assert table.rows * table.dim <= most * sum(p.numel() for p in module.parameters())


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


def test_what_stands_for_parameters_has_no_values_to_read():
    with godwit.Cluster() as c:
        d = godwit.dense(net(), cluster=c)
        with pytest.raises(ValueError, match=r"unbind of what godwit\.dense returned: .* which takes it, or a list of several"):
            [*d]


def test_parameters_have_the_steps_of_all_when_all_have_met():
    model = net()
    with godwit.Cluster(nodes=2) as c:
        d = godwit.dense(model, cluster=c)
        opt = godwit.optim.SGD(d, lr=0.1)
        train(model, opt, 2)
        before = [p.detach().clone() for p in model.parameters()]
        rows = torch.arange(d.table.rows)
        other = c.workers[1]  # of the other node
        other.push(d.table, rows, torch.ones(len(rows), d.table.dim), rate=1.0)
        meeting = threading.Thread(target=other.sync_all)
        meeting.start()
        c.worker.sync_all()
        meeting.join()
        for p, q in zip(model.parameters(), before):
            assert torch.allclose(p, q - 1, atol=1e-5)


def test_a_module_that_nobody_has_any_more_goes_though_its_table_stays():
    with godwit.Cluster() as c:
        model = net()
        parameter = weakref.ref(model[0].weight)
        opt = godwit.optim.SGD(godwit.dense(model, cluster=c), lr=0.1)
        train(model, opt, 1)
        del model, opt
        gc.collect()
        assert parameter() is None
        c.worker.sync_all()


def test_a_module_that_is_compiled_trains_as_with_torch():
    from torch._dynamo.testing import CompileCounter

    ours, theirs, counter = net(), net(), CompileCounter()
    with godwit.Cluster() as c:
        a = godwit.optim.Adam(godwit.dense(ours, cluster=c), lr=0.01)
        b = torch.optim.Adam(theirs.parameters(), lr=0.01)
        train(torch.compile(ours, backend=counter, fullgraph=True), a, 4)
        train(theirs, b, 4)
        assert same(ours, theirs)
        assert counter.frame_count == 1


def test_parameters_are_those_of_the_table_from_its_begin_on(tmp_path):
    with godwit.Cluster() as c:
        trained = net()
        a = godwit.optim.Adam(godwit.dense(trained, name="net", cluster=c), lr=0.01)
        train(trained, a, 4)
        place = c.save(tmp_path / "saved")
    with godwit.Cluster() as c:
        model = net()
        godwit.optim.Adam(godwit.dense(model, name="net", cluster=c), lr=0.01)
        c.load(place)
        c.start()  # a model whose parts are called, or that is compiled, has no first forward that could read them
        assert same(model, trained)


def test_an_optimizer_of_torch_is_told_what_it_was_given():
    with godwit.Cluster() as c, pytest.raises(ValueError, match=r"given what godwit.dense returned.*module.parameters\(\)"):
        torch.optim.Adam([godwit.dense(net(), cluster=c)])
