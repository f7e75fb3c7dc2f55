"""Raw access by numpy arrays."""

import copy
import os
import pickle
import threading
import time

import numpy as np
import pytest

import godwit
from godwit import errors


def test_what_is_pushed_is_pulled(clusters):
    t = clusters.table("t", 1000, 4, init=godwit.uniform(2, 2))
    for w in clusters.workers:
        w.push(t, np.arange(1000), np.ones((1000, 4), np.float32))
    got = clusters.worker.pull(t, [[0, 1], [998, 999]])
    assert got.shape == (2, 2, 4) and got.dtype == np.float32
    assert (got == 2 + len(clusters.workers)).all()


def test_initial_values_follow_from_the_seed():
    def values(seed):
        with godwit.Cluster(seed=seed) as c:
            return c.worker.pull(c.table("t", 100, 8, init=godwit.normal(1, 0.5)), np.arange(100))

    a = values(1)
    assert (a == values(1)).all() and (a != values(2)).any()
    assert abs(a.mean() - 1) < 0.1 and abs(a.std() - 0.5) < 0.1


def test_out_is_written_in_place(cluster):
    t = cluster.table("t", 10, 2, init=godwit.uniform(3, 3))
    out = np.zeros((2, 2), np.float32)
    assert cluster.worker.pull(t, [1, 2], out) is out
    assert (out == 3).all()


def test_a_table_that_cannot_begin_keeps_no_other_from_beginning(cluster):
    good, bad = cluster.table("good", 10, 1), cluster.table("bad", 10, 1, rule="sdg(lr=1)")
    with pytest.raises(errors.ArgumentError, match='table "bad".*sdg'):
        cluster.worker.pull(good, [1])
    assert cluster.worker.pull(good, [1]).tolist() == [[0]]
    with pytest.raises(errors.ArgumentError, match="'bad' did not begin.*sdg.*add it anew"):
        cluster.worker.pull(bad, [1])
    again = cluster.table("bad", 10, 1, rule="sgd(lr=1)")
    cluster.worker.push(again, [3], [[2]])
    assert cluster.worker.pull(again, [3]).tolist() == [[-2]]


def test_set_overwrites_and_resets_the_rule(cluster):
    t = cluster.table("t", 10, 1, rule="adagrad(lr=1,eps=1e-10)")
    w = cluster.worker
    one = np.ones((1, 1), np.float32)
    w.push(t, [3], one)
    w.push(t, [3], one)
    w.set(t, [3], one * 5)
    w.push(t, [3], one)
    assert w.pull(t, [3])[0, 0] == 4  # the first step of AdaGrad is the rate


def test_a_row_that_occurs_twice_is_pushed_twice_or_summed(cluster):
    t = cluster.table("t", 10, 1, rule="adagrad(lr=1,eps=1e-10)")
    w = cluster.worker
    two = np.ones((2, 1), np.float32)
    w.push(t, [1, 1], two)
    w.push(t, [2, 2], two, sum=True)
    assert w.pull(t, [1, 2]).ravel() == pytest.approx([-1 - 2**-0.5, -1])


def test_the_rate_comes_with_the_push(clusters):
    t = clusters.table("t", 100, 3, rule="ratedsgd", init=godwit.uniform(1, 1))
    rows = np.arange(100)
    for i, w in enumerate(clusters.workers):
        w.push(t, rows, np.ones((100, 3), np.float32), rate=2.0**-i)
    want = 1 - sum(2.0**-i for i in range(len(clusters.workers)))
    assert (clusters.worker.pull(t, rows) == want).all()


def test_vectors_that_are_not_finite_are_left_out_and_counted(cluster):
    t = cluster.table("t", 10, 2)
    v = np.ones((3, 2), np.float32)
    v[1, 0] = np.nan
    cluster.worker.push(t, [1, 2, 3], v, finite=True)
    assert cluster.worker.pull(t, [1, 2, 3]).tolist() == [[1, 1], [0, 0], [1, 1]]
    assert cluster.stats()["not_finite"] == 1


def test_asynchronous_calls_are_waited_for(clusters):
    t = clusters.table("t", 5000, 8)
    w, rows = clusters.worker, np.arange(5000)
    pushes = [w.push_async(t, rows, np.full((5000, 8), i, np.float32)) for i in range(4)]
    for h in pushes:
        h.wait()
        assert h.done
    h = w.pull_async(t, rows)
    assert (h.wait(timeout=60) == 6).all() and h.wait() is h.wait()


def test_tables_may_be_added_while_others_are_in_use(clusters):
    w = clusters.worker
    a = clusters.table("a", 10, 1)
    w.push(a, [1], [[1.0]])
    w.advance()
    b = clusters.table("b", 20, 2)
    w.push(b, [19], [[2.0, 3.0]])
    w.intent(b, [1, 2])
    w.intent(a, [1, 2], 5, 9)
    assert w.advance() == w.clock == 2
    w.wait_sync()
    assert w.pull(a, [1]).tolist() == [[1]] and w.pull(b, [19]).tolist() == [[2, 3]]
    with pytest.raises(errors.ArgumentError, match="no other table.*close the cluster first"):
        clusters.table("a", 10, 1)


def test_a_worker_waits_for_rounds_of_other_nodes_where_it_is_told_to():
    with godwit.Cluster(nodes=2) as c:
        t = c.table("t", 100, 4)
        w = c.worker

        def work(steps):  # of microseconds, where a round of the other node takes many
            for _ in range(steps):
                w.pull(t, [0])  # local
                w.advance()

        w.bound_age(1)
        for _ in range(100):
            work(100)
            waited = c.stats()["blocked"]
            if waited > 0:
                break
        assert waited > 0
        w.bound_age(0)
        work(100)
        assert c.stats()["blocked"] == waited
        for steps in (-1, 2**62):
            with pytest.raises(errors.ArgumentError, match="want 0"):
                w.bound_age(steps)


def test_announced_rows_become_local():
    with godwit.Cluster(nodes=2) as c:
        t = c.table("t", 4000, 4)
        w, rows = c.worker, np.arange(2000)
        w.intent(t, rows, 0, 1000)
        w.localize(t, rows)
        before = c.stats()
        w.pull(t, rows)
        after = c.stats()
        local = sum(after[k] - before[k] for k in ("local", "replica"))
        assert local == 2000 and after["remote"] == before["remote"]


def test_workers_of_threads_meet_at_barriers():
    n, steps = 64, 20
    with godwit.Cluster(workers=n) as c:
        t = c.table("t", 50, 2)
        c.start()
        failed = []

        def train(w):
            try:
                for _ in range(steps):
                    w.push(t, np.arange(50), np.ones((50, 2), np.float32))
                w.barrier()
                assert (w.pull(t, np.arange(50)) == n * steps).all()
            except BaseException as e:
                failed.append(e)

        threads = [threading.Thread(target=train, args=(w,)) for w in c.workers]
        for th in threads:
            th.start()
        for th in threads:
            th.join()
        assert not failed


def test_a_second_thread_at_a_worker_is_told():
    with godwit.Cluster(workers=2) as c:
        t = c.table("t", 10, 1)
        w = c.worker
        c.start()
        failed = []

        def wait():
            while True:
                try:
                    return w.barrier()
                except errors.BusyError:  # the pulls below came first
                    pass
                except BaseException as e:
                    return failed.append(e)

        th = threading.Thread(target=wait)
        th.start()
        for _ in range(10000):
            try:
                w.pull(t, [1])
                time.sleep(0.001)
            except errors.BusyError as e:
                assert "barrier" in str(e)
                break
        else:
            pytest.fail("a worker that waits at a barrier served another thread")
        c.workers[1].barrier()
        th.join()
        assert not failed


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda w, t: w.pull(t, [10]), IndexError, "row 10 at position 0"),
        (lambda w, t: w.pull(t, [3, -1]), IndexError, "row -1 at position 1"),
        (lambda w, t: w.pull(t, [0.5]), TypeError, "float64"),
        (lambda w, t: w.pull(t, ["a"]), TypeError, "want integers"),
        (lambda w, t: w.pull(t, np.array([2**63], np.uint64)), IndexError, "9223372036854775808"),
        (lambda w, t: w.pull("t", [1]), TypeError, "cluster.table"),
        (lambda w, t: w.cluster.sampler("t"), TypeError, "cluster.table"),
        (lambda w, t: w.prepare_sample(t, 1), TypeError, "want what cluster.sampler returned"),
        (lambda w, t: w.pull_sample(t, 1), TypeError, "want what prepare_sample returned"),
        (lambda w, t: w.pull(t, {1, 2}), TypeError, "type set, want an array"),
        (lambda w, t: w.pull(t, None), TypeError, "type NoneType, want an array"),
        (lambda w, t: w.pull(t, [1], np.zeros((1, 2))), TypeError, "float64"),
        (lambda w, t: w.pull(t, [1], np.zeros((2, 2), np.float32)), ValueError, "shape"),
        (lambda w, t: w.pull(t, [1, 2], np.zeros((2, 4), np.float32)[:, ::2]), ValueError, "strides"),
        (lambda w, t: w.pull(t, [1], [[0.0, 0.0]]), TypeError, "list"),
        (lambda w, t: w.push(t, [1], np.zeros((1, 3), np.float32)), ValueError, "shape"),
        (lambda w, t: w.push(t, [1], np.zeros((1, 2), np.float32), rate=1), ValueError, "rate 1"),
        (lambda w, t: w.pull(t, [2**70]), IndexError, "row 1180591620717411303424 is above"),
        (lambda w, t: w.pull(t, [-1, 2**63]), IndexError, "row 9223372036854775808 is above"),
        (lambda w, t: w.pull(t, np.array([-(2**70), 1], dtype=object)), IndexError, "row -1180591620717411303424 is below"),
        (lambda w, t: w.pull(t, np.array([True], dtype=object)), TypeError, "want integers"),
        (lambda w, t: w.intent(t, [1], 0, 2**63), ValueError, "62 bits"),
        (lambda w, t: w.push(t, [1], [[1, 1]], rate="fast"), ValueError, "fast"),
        (lambda w, t: w.push(t, [1], [[1, 1]], rate=None), TypeError, "real number"),
    ],
)
def test_wrong_arguments_are_told_in_the_users_words(cluster, call, error, text):
    t = cluster.table("t", 10, 2)
    with pytest.raises(error, match=text):
        call(cluster.worker, t)
    assert (cluster.worker.pull(t, [1]) == 0).all()  # nothing has happened


def test_rows_that_are_objects_of_python(cluster):
    t = cluster.table("t", 10, 2)
    cluster.worker.push(t, np.array([[3, np.int32(4)]], dtype=object), np.ones((1, 2, 2), np.float32))
    assert cluster.worker.pull(t, [2, 3, 4]).tolist() == [[0, 0], [1, 1], [1, 1]]


def test_tensors_whose_memory_has_other_numbers(cluster):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    t = cluster.table("t", 10, 1)
    negated = torch.complex(torch.ones(1, 1), torch.ones(1, 1)).conj().imag
    for call in (lambda: cluster.worker.push(t, [1], negated), lambda: cluster.worker.pull(t, [1], negated)):
        with pytest.raises(ValueError, match="resolve_neg"):
            call()
    assert cluster.worker.pull(t, torch.tensor([1], dtype=torch.uint64)).tolist() == [[0]]
    with pytest.raises(IndexError, match="row 9223372036854775809 is above"):
        cluster.worker.pull(t, torch.tensor([2**63 + 1], dtype=torch.uint64))


def test_what_is_under_way_tells_so(cluster):
    t = cluster.table("t", 10, 1)
    s = cluster.sampler(t)
    h = cluster.worker.pull_async(t, [1])
    h.wait()
    assert repr(h) == f"Handle(done, {cluster.worker!r})"
    assert repr(cluster.worker.prepare_sample(s, 1)) == f"Sample of {t!r}"


def test_a_wait_without_end(clusters):
    t = clusters.table("t", 1000, 2)
    assert clusters.worker.pull_async(t, range(1000)).wait(float("inf")).shape == (1000, 2)


def test_what_can_be_had_is_listed(run):
    code, out, err = run("import sys, godwit; names = dir(godwit); print(len({'init', 'lookahead', 'load', '__version__'} & {*names}), 'torch' in sys.modules)")
    assert (code, out.split()) == (0, ["4", "False"]), err


def test_read_only_arrays_are_not_written(cluster):
    t = cluster.table("t", 10, 2)
    out = np.zeros((1, 2), np.float32)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        cluster.worker.pull(t, [1], out)


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"workers": True}, {"nodes": 65}, {"seed": -1}, {"policy": "nonsense"}])
def test_wrong_clusters(wrong):
    with pytest.raises(ValueError):
        c = godwit.Cluster(**wrong)
        c.table("t", 1, 1)
        c.start()


def test_what_is_closed_says_so(cluster):
    t = cluster.table("t", 10, 2)
    w = cluster.worker
    w.pull(t, [1])
    cluster.close()
    cluster.close()
    with pytest.raises(errors.ClosedError):
        w.pull(t, [1])
    with pytest.raises(errors.ClosedError):
        cluster.table("u", 1, 1)
    with pytest.raises(errors.ClosedError):
        cluster.sampler(t)
    with pytest.raises(errors.ClosedError):
        w.wait_sync()
    with pytest.raises(errors.ClosedError, match="stats"):
        cluster.stats()
    with pytest.raises(errors.ClosedError, match="rows are gone"):  # and no state without rows
        cluster.state_dict()


@pytest.fixture
def closing(monkeypatch):
    """Has a thread close a cluster that waits for another rank. It returns the cluster, a table, the thread, and what ends the wait."""
    c, waits, may = godwit.Cluster(), threading.Event(), threading.Event()
    t = c.table("t", 10, 1)
    c.start()
    end = c._groups[0].close

    def close(ms):
        waits.set()
        return may.wait(ms / 1000) and end(ms)

    monkeypatch.setattr(c._groups[0], "close", close)
    thread = threading.Thread(target=c.close, daemon=True)
    thread.start()
    assert waits.wait(60)
    yield c, t, thread, may
    may.set()
    thread.join(60)
    assert not thread.is_alive()


def in_a_thread(call, wait):
    """Has a thread make a call, waits for so many seconds for its end, and returns the thread."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(wait)
    return thread


def test_calls_of_other_threads_do_not_wait_for_a_cluster_that_closes(closing):
    c, t, thread, _ = closing
    told = []

    def calls():
        for call in (lambda: c.worker.pull(t, [1]), c.worker.barrier, c.start, lambda: c.table("u", 1, 1)):
            try:
                call()
            except errors.ClosedError as e:
                told.append(e)

    in_a_thread(calls, 20)
    assert len(told) == 4 and thread.is_alive()


def test_who_closes_a_cluster_that_closes_waits_too(closing):
    c, _, _, may = closing
    other = in_a_thread(c.close, 0.05)
    assert other.is_alive()
    may.set()
    other.join(60)
    assert not other.is_alive()


def test_a_rank_that_fails_while_a_thread_closes_its_cluster_waits_for_nobody(closing, monkeypatch):
    c, _, _, _ = closing
    abandoned = []
    monkeypatch.setattr(c._ending[0], "abandon", lambda reason, ms: abandoned.append(reason) or True)
    monkeypatch.setattr(godwit.Cluster, "world", 2)
    in_a_thread(lambda: c.__exit__(ValueError, ValueError("a batch"), None), 20)
    assert abandoned == ["ValueError: a batch"]


@pytest.mark.parametrize("copy", [pickle.dumps, copy.deepcopy], ids=["pickle", "deepcopy"])
def test_what_is_of_this_process_is_not_copied(cluster, copy):
    for x in (cluster, cluster.table("t", 1, 1)):
        with pytest.raises(TypeError, match="of this process|in the cluster"):
            copy(x)


def test_there_is_one_cluster_that_others_use():
    c = godwit.init(seed=7)
    try:
        assert godwit.cluster() is c
        with pytest.raises(errors.ArgumentError, match=r"already.*godwit\.cluster\(\) is it"):
            godwit.init()
    finally:
        c.close()
    with godwit.cluster() as d:
        assert d is not c


def test_rows_that_are_drawn(clusters):
    t = clusters.table("t", 40, 2, rule="ratedsgd", init=godwit.uniform(3, 3))
    often = clusters.sampler(t, [0] * 10 + [1] * 10 + [2**8] * 10, exponent=0.5)
    distinct = clusters.sampler(t, level="bounded", distinct=True)
    w = clusters.worker
    a, b = w.prepare_sample(often, 4000, w.clock, w.clock + 2), w.prepare_sample(distinct, 40)
    rows, values = w.pull_sample(a, 3000)
    assert values.shape == (3000, 2) and (values == 3).all()
    counts = np.bincount(rows, minlength=40)
    assert not counts[:10].any() and not counts[30:].any() and 12 < counts[20:30].sum() / counts[10:20].sum() < 22  # 16, by the root
    w.advance()
    assert sorted(w.pull_sample(b, 40)[0]) == list(range(40))
    w.finish_sample(a)
    with pytest.raises(godwit.GodwitError):
        w.pull_sample(a, 1)
    with pytest.raises(ValueError, match="before the first access"):
        clusters.sampler(t)
    wrong = clusters.table("wrong", 3, 1)
    with pytest.raises(ValueError, match="normal"):
        clusters.sampler(wrong, "normal")
    assert w.pull(wrong, [1]).tolist() == [[0]]


def test_samples_that_there_is_no_room_or_no_number_for(cluster):
    t = cluster.table("t", 10, 2)
    s, w = cluster.sampler(t), cluster.worker
    samples = []
    with pytest.raises(errors.FullError, match="samples open; pull them"):
        for _ in range(10**6):
            samples.append(w.prepare_sample(s, 1))
    w.pull_sample(samples[0], 1)
    w.prepare_sample(s, 1)
    with pytest.raises(errors.ArgumentError, match="no such samples"):
        w.pull_sample(samples[0], 1)


@pytest.mark.parametrize("n", [-1, 2**32 + 5, 1.5])
def test_wrong_numbers_of_rows_that_are_drawn(cluster, n):
    t = cluster.table("t", 10, 2)
    s = cluster.sampler(t)
    sample = cluster.worker.prepare_sample(s, 3)
    for call in (lambda: cluster.worker.prepare_sample(s, n), lambda: cluster.worker.pull_sample(sample, n)):
        with pytest.raises(errors.ArgumentError, match=f"n={n}, want a whole number"):
            call()


@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError])
def test_rows_that_are_not_prepared_are_not_accessed(cluster, failure):
    fails = [failure]

    def prepare(w):
        if fails:
            raise fails.pop()
        w.set(t, [1], [[1, 1]])

    t, u = cluster.table("t", 10, 2), cluster.table("u", 10, 2)
    t.begin(prepare=lambda w: w.set(t, [0], [[2, 2]]))
    t.begin(prepare=prepare)
    u.begin(prepare=lambda w: w.set(u, [0], [[3, 3]]))
    with pytest.raises(failure):
        cluster.worker.pull(u, [0])
    with pytest.raises(godwit.GodwitError, match="accessed already"):
        t.begin(rule="adagrad(lr=0.1)")
    assert cluster.worker.pull(u, [0]).tolist() == [[3, 3]]
    assert cluster.worker.pull(t, [0, 1, 2]).tolist() == [[2, 2], [1, 1], [0, 0]]


@pytest.mark.parametrize(
    "wrong, text",
    [
        (lambda c, t: c.table("w", 10, 2, init=godwit.normal(0, float("nan"))), "finite"),
        (lambda c, t: c.table("w", 10, 2, init=godwit.uniform(0, 1e39)), "finite"),
        (lambda c, t: c.table("w", 10, 2, init=godwit.uniform(1, 0)), "low ≤ high"),
        (lambda c, t: c.table("w", 10.5, 2), "rows=10.5"),
        (lambda c, t: c.table("w", 10, True), "dim=True"),
        (lambda c, t: c.table("w", 10, 2, init="zero"), "init='zero', want godwit.zero"),
        (lambda c, t: c.table("w", 10, 2, init=godwit.zero), "want godwit.zero"),
        (lambda c, t: c.table("w", 10, 2, rule=3), "rule=3, want the name of a rule"),
        (lambda c, t: c.sampler(t, "zipf"), "zipf"),
        (lambda c, t: c.sampler(t, level="best"), "best-effort"),
        (lambda c, t: c.sampler(t, [1.0] * 11), "one for each of 10 rows"),
        (lambda c, t: c.sampler(t, [0.0] * 10), "not all 0"),
        (lambda c, t: c.sampler(t, [1.0] * 9 + [float("inf")]), "finite"),
        (lambda c, t: c.sampler(t, [1.0] * 10, exponent=float("nan")), "finite exponent"),
        (lambda c, t: c.sampler(t, None), "distribution is a NoneType, want how often"),
        (lambda c, t: c.sampler(t, np.ones((10, 2))), "distribution is a ndarray, want how often"),
    ],
)
def test_what_cannot_be_is_told_where_it_is_made(cluster, wrong, text):
    t = cluster.table("t", 10, 2)
    with pytest.raises(errors.ArgumentError, match=text):
        wrong(cluster, t)
    assert cluster.worker.pull(t, [1]).tolist() == [[0, 0]]


def test_a_table_with_quotes_in_its_name_keeps_no_other_from_beginning(cluster):
    cluster.table('a "t"', np.int64(10), np.int32(2), rule="none")
    good = cluster.table("t", 10, 2)
    assert cluster.stats()["not_finite"] == 0
    with pytest.raises(errors.ArgumentError, match="none"):
        cluster.worker.pull(good, [1])
    assert cluster.worker.pull(good, [1]).tolist() == [[0, 0]]


@pytest.mark.parametrize(
    "call",
    [
        lambda w, t: w.advance(),
        lambda w, t: w.intent(t, [1]),
        lambda w, t: w.bound_age(3),
        lambda w, t: w._push_later(t, [1], np.ones((1, 1), np.float32), 0.0, 1.0, False),
        lambda w, t: w.pull_async(t, [1]).wait(),
    ],
    ids=["advance", "intent", "bound_age", "push", "pull"],
)
def test_what_is_waited_for_later_is_in_nobodys_way(call):
    with godwit.Cluster(workers=2, nodes=2) as c:
        t = c.table("t", 10, 1)
        c.start()
        w, others = c.worker, c.workers[1:]
        h = w._begin(c._library.barrier, t._open().workers[0], (), None)  # stands for a push that waits for room: it has the worker
        h.in_order = True
        w._later.append(h)
        threads = [threading.Timer(0.02, other.barrier) for other in others]
        for th in threads:
            th.start()
        try:
            call(w, t)
            assert h.done
        finally:
            for th in threads:
                th.join()


def test_a_wait_that_finds_the_worker_in_use_leaves_the_operation(monkeypatch):
    with godwit.Cluster(nodes=2, policy="static") as c:
        t = c.table("t", 20_000, 8, init=godwit.uniform(3, 3))
        c.start()
        h = c.worker.pull_async(t, np.arange(20_000))
        with monkeypatch.context() as m:
            m.setattr(c._library, "wait", lambda *_: -7)  # as while another thread has the worker
            with pytest.raises(errors.BusyError):
                h.wait()
        assert not h.done
        assert (h.wait() == 3).all() and h.done


def test_a_step_is_counted_once_in_all_tables(cluster, monkeypatch):
    w = cluster.worker
    for name in "ab":  # which begin one after the other
        w.pull(cluster.table(name, 10, 1), [1])
    first, second = (g.workers[0] for g in cluster._groups)
    with monkeypatch.context() as m:
        real = cluster._library.advance
        m.setattr(cluster._library, "advance", lambda id: -7 if id == second else real(id))  # as while another thread has the worker
        with pytest.raises(errors.BusyError):
            w.advance()
    assert w.clock == 0
    assert w.advance() == 1
    assert [cluster._library.clock(id) for id in (first, second)] == [1, 1]


def test_texts_that_are_not_utf8_are_not_changed(cluster, tmp_path):
    cluster.worker.pull(cluster.table("t", 10, 1), [1])
    text = str(tmp_path / "\udcff")
    for call in (lambda: cluster.table(text, 10, 1), lambda: cluster.save(text), lambda: godwit.load(text), lambda: godwit.Cluster(trace=text)):
        with pytest.raises(errors.ArgumentError, match=r"\\udcff', which is not UTF-8"):
            call()


def test_a_trace_is_not_written_beside_a_folder_that_is_not_utf8(monkeypatch):
    monkeypatch.setattr(os, "getcwd", lambda: "/\udcff")
    with pytest.raises(errors.ArgumentError, match=r"/\\udcff/t', which is not UTF-8"):
        godwit.Cluster(trace="t")
