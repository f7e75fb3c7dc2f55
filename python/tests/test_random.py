"""Calls with random arguments, most of them wrong: each returns or raises, and the rows stay what they are."""

import ctypes
import os
import random

import numpy as np

import godwit
from godwit import _lib

SEED = int(os.environ.get("SEED", random.randrange(2**32)))


def anything(r):
    return r.choice(
        [
            None,
            True,
            -1,
            0,
            3,
            2**63,
            2**70,
            -(2**63),
            1.5,
            float("nan"),
            "x",
            b"x",
            [],
            [1],
            [[1, 2], [3]],
            [None],
            ["a"],
            {},
            object(),
            np.arange(5),
            np.arange(10)[::2],
            np.arange(5.0),
            np.array(3),
            np.array([], np.int64),
            np.array([2**64 - 1], np.uint64),
            np.array([1, 2], np.int8),
            np.array(["a"]),
            np.array([object()]),
            np.zeros((2, 3), np.float32),
            np.zeros((2, 3), np.float16),
            np.zeros((3, 2), np.float32).T,
            np.zeros((1, 3), ">f4"),
            np.zeros((0, 3), np.float32),
            lambda: 0,
        ]
    )


def test_10000_calls_with_wrong_arguments():
    print("SEED =", SEED)
    r = random.Random(SEED)
    with godwit.Cluster(workers=1) as c:
        t, w = c.table("t", 10, 3), c.worker
        quiet = c.table("quiet", 10, 3, init=godwit.uniform(4, 4))
        calls = [w.pull, w.push, w.set, w.state, w.set_state, w.intent, w.localize, w.pull_async, w.push_async, c.table]
        raised = 0
        for _ in range(10_000):
            f = r.choice(calls)
            args = [anything(r) for _ in range(r.randrange(5))]
            if f != c.table and r.random() < 0.8:
                args[:1] = [t]
            try:
                h = f(*args)
                if isinstance(h, godwit.Handle):
                    h.wait()
            except Exception as e:
                raised += 1
                assert "defect" not in str(e), (SEED, f, args)
        assert raised > 5000, SEED
        assert (w.pull(quiet, np.arange(10)) == 4).all()


def test_10000_calls_of_the_library_with_wrong_numbers():
    r = random.Random(SEED)
    lib = _lib.load()
    numbers = [-(2**63), -1, 0, 1, 2, 3, 7, 2**31, 2**62]
    memory = np.zeros(64, np.int64)
    here = memory.__array_interface__["data"][0]
    op, size, begun = ctypes.c_uint64(), ctypes.c_uint64(), 0

    def rows():  # a count beyond the memory would be a lie that no library can see through
        return r.choice([(here, r.randrange(9)), (0, r.choice(numbers) % 2**63), (0, 0), (here, 2**63)])

    others = np.zeros(64, np.float32)
    found = np.zeros((2, 64), np.int64)
    unique, inverse = (x.__array_interface__["data"][0] for x in found)
    sizes = [0, 1, 2, 2**31, 2**63, 2**64 - 1]

    def apart():  # from what rows returns
        return r.choice([(others.__array_interface__["data"][0], r.randrange(9)), (0, 0), (0, 3)])

    def op_at():
        return r.choice([ctypes.addressof(op), 0])

    def size_at():
        return r.choice([ctypes.addressof(size), 0])

    with godwit.Cluster() as c:
        t = c.table("t", 10, 2)
        c.worker.pull(t, [1])
        ids = numbers + [t._group.id, t._group.workers[0]]
        for i in range(10_000):
            n, k = r.choice(ids), r.choice([-1, 0, 1, 5])
            codes = {
                0: lambda: lib.pull(n, k, *rows(), *rows(), k, 0, op_at()),
                1: lambda: lib.push(n, k, *rows(), *rows(), r.choice([0.0, -1.0, float("nan")]), r.choice([1.0, 0.5, float("inf")]), k, 0, op_at()),
                2: lambda: lib.set(n, k, *rows(), *rows(), 0, op_at()),
                3: lambda: lib.intent(n, k, *rows(), r.choice(numbers), r.choice(numbers)),
                4: lambda: lib.localize(n, k, *rows(), 0, op_at()),
                5: lambda: lib.wait(n, r.choice(numbers) % 2**64, 0),
                6: lambda: lib.cancel(n, r.choice(numbers) % 2**64),
                7: lambda: lib.worker(n, r.choice([-1, 0, 5])),
                8: lambda: lib.open(*r.choice([(b"", 0), (b"{}", 2), (b"\xff\x00", 2), (None, 5), (b'{"tables":[{}]}', 15)])),
                9: lambda: lib.unique(*rows(), *r.choice([(here, here), (0, 0)]), r.choice([0, 3])),
                10: lambda: lib.stats(n, None, 0, size_at()),
                11: lambda: lib.advance(n),
                12: lambda: lib.ready(n, 0),
                13: lambda: lib.read(n, k, *rows(), *rows(), r.choice([0, 1, 2, 3, 4]), 0, op_at()),
                14: lambda: lib.write(n, k, *rows(), *rows(), r.choice([0, 1, 2, 3, 4]), 0, op_at()),
                15: lambda: lib.state(n, k),
                16: lambda: lib.save(n, *r.choice([(b"", 0), (b"{}", 2), (None, 5), (b"[]", 2)]), None, 0, 0, op_at()),
                17: lambda: lib.rows(n, k, *rows(), *rows(), r.choice([0, 1, 2, 3, 4])),
                18: lambda: lib.checkpoint(*r.choice([(b"", 0), (b"/none", 5), (None, 5)])),
                19: lambda: lib.describe(n, None, 0, size_at()),
                20: lambda: lib.lookup(n, k, *rows(), *r.choice([(unique, inverse), (0, 0)]), r.choice([0, 3, 8]), size_at(), *apart(), 0, op_at()),
                21: lambda: lib.add(*rows(), *apart(), r.choice(sizes), r.choice(sizes), k, *apart()),
            }[i % 22]
            code = codes()
            assert code != -9, (SEED, i, lib.error())
            if code < 0:
                assert lib.error(), (SEED, i)
            if op.value:  # what was begun: its worker takes no other call until it was waited for
                begun += 1
                while (code := lib.wait(t._group.workers[0], op.value, 1000)) == _lib.AGAIN:
                    pass
                assert code == 0 or lib.error(), (SEED, i)
                op.value = 0
        print(begun, "calls were waited for")
        assert c.worker.pull(t, [1]).shape == (1, 2)
