"""Batches that are read ahead."""

import numpy as np
import pytest

import godwit


class Loader:
    """A loader with a state, which counts what was read."""

    def __init__(self, n):
        self.n, self.at = n, 0

    def __len__(self):
        return self.n

    def __iter__(self):
        while self.at < self.n:
            self.at += 1
            yield np.arange(self.at * 10, self.at * 10 + 10)
        self.at = 0

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


def test_every_batch_comes_once_and_in_order(cluster):
    t = cluster.table("t", 2000, 2)
    ahead = godwit.lookahead(Loader(100), keys=lambda b: {t: b}, worker=cluster.worker)
    assert len(ahead) == 100
    for epoch in range(2):
        assert [int(b[0]) for b in ahead] == list(range(10, 1010, 10))
        assert cluster.worker.clock == 100 * (epoch + 1)


def test_the_state_is_that_of_the_batch_that_was_delivered(cluster):
    t = cluster.table("t", 2000, 2)
    ahead = godwit.lookahead(Loader(50), keys=lambda b: [(t, b)], worker=cluster.worker)
    for i, b in enumerate(ahead):
        if i == 20:
            state = ahead.state_dict()
            assert ahead.loader.at > 21
            break
    other = godwit.lookahead(Loader(50), keys=lambda b: {t: b}, worker=cluster.worker)
    other.load_state_dict(state)
    assert [int(b[0]) for b in other][0] == int(b[0]) + 10


def test_the_state_after_an_epoch_begins_the_next_one(cluster):
    t = cluster.table("t", 2000, 2)
    ahead, other = (godwit.lookahead(Loader(5), keys=lambda b: {t: b}, worker=cluster.worker) for _ in range(2))
    for _ in ahead:
        pass
    other.load_state_dict(ahead.state_dict())
    assert [int(b[0]) for b in other] == [10, 20, 30, 40, 50]


def test_what_was_announced_is_withdrawn():
    with godwit.Cluster(nodes=2) as c:
        t = c.table("t", 4000, 2)
        ahead = godwit.lookahead(Loader(100), keys=lambda b: {t: b}, worker=c.worker)
        it = iter(ahead)
        for _ in range(10):
            next(it)
        before = c.worker.clock
        it.close()
        assert c.worker.clock > before + 1  # the clocks of all that was announced have passed


def test_announced_batches_are_here_when_they_are_used():
    with godwit.Cluster(nodes=2, seed=3) as c:
        t = c.table("t", 20000, 4)
        c.start()
        w, rng = c.worker, np.random.default_rng(1)
        batches = [rng.integers(0, 20000, 200) for _ in range(300)]
        for ahead in (False, True):
            before = c.stats()
            for b in godwit.lookahead(batches, keys=lambda b: {t: b} if ahead else {}, worker=w):
                w.pull(t, b)
                w.push(t, b, np.ones((200, 4), np.float32))
            after = c.stats()
            got = {k: after[k] - before[k] for k in ("local", "replica", "ahead", "queued", "remote")}
            share = (got["local"] + got["replica"] + got["ahead"]) / sum(got.values())
            if ahead:
                assert share > unannounced
            print(share)
            unannounced = share


def test_keys_of_modules():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with godwit.Cluster() as c:
        m = godwit.nn.Embedding(100, 2, cluster=c)
        for b in godwit.lookahead([torch.tensor([1, 2])] * 3, keys=lambda b: {m: b}, worker=c.worker):
            m(b)
        assert c.worker.clock == 3


def test_what_a_loader_gave_before_it_failed_comes_first(cluster):
    table = cluster.table("t", 100, 2)

    def load():
        yield from range(7)
        raise OSError("a file is gone")

    seen = []
    with pytest.raises(OSError, match="a file is gone"):
        for batch in godwit.lookahead(load(), keys=lambda b: {table: [b]}, worker=cluster.worker):
            seen.append(batch)
    assert seen == list(range(7)) and cluster.worker.clock == 7


def test_batches_before_one_that_cannot_be_announced_come_first(cluster):
    table = cluster.table("t", 100, 2)
    ahead, seen = godwit.lookahead([[1], [2], [200], [3]], keys=lambda b: {table: b}, worker=cluster.worker), []
    with pytest.raises(IndexError, match="row 200"):
        for batch in ahead:
            seen.append(batch[0])
    assert seen == [1, 2] and cluster.worker.clock == 2


@pytest.mark.parametrize("keys, text", [(lambda b: b, "returned a int, want a dict"), (lambda b: [b], "a list with a int in it, want a dict"), (lambda b: {"t": [b]}, "rows of a str, want a module"), ([1], "keys of lookahead are a list")])
def test_keys_that_are_none(cluster, keys, text):
    with pytest.raises(TypeError, match=text):
        next(iter(godwit.lookahead([1], keys=keys, worker=cluster.worker)))
