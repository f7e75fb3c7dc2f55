"""What a process does to the library: import, fork, interrupts, its end."""

import ctypes
import gc
import os
import signal
import sys
import weakref

import numpy as np
import pytest

import godwit
from godwit import Handle


def test_import_is_quick_and_starts_no_thread(run):
    least = 1.0
    for _ in range(10):  # other programs take the processor's caches, which takes time: the least tells
        code, out, err = run(
            """
            import sys, threading, time
            begin = time.process_time()
            import godwit
            took = time.process_time() - begin
            print(len(__import__("os").listdir("/proc/self/task")), "numpy" in sys.modules, "torch" in sys.modules, took)
            """
        )
        threads, numpy, torch, took = out.split()
        assert code == 0 and threads == "1" and numpy == "False" and torch == "False"
        least = min(least, float(took))
        if least < 0.05:
            return
    pytest.fail(f"an import takes {least} s")


def test_a_forked_child_gets_an_error_and_the_parent_goes_on(run):
    code, out, err = run(
        """
        import os, sys, time, godwit, numpy as np
        c = godwit.Cluster()
        t = c.table("t", 100, 2)
        c.worker.push(t, [1], np.ones((1, 2), np.float32))
        pid = os.fork()
        if pid == 0:
            begin = time.time()
            for call in (lambda: c.worker.pull(t, [1]), lambda: c.worker.push(t, [1], np.ones((1, 2), np.float32)), c.worker.advance,
                         c.worker.barrier, c.stats, c.close, lambda: godwit.Cluster().table("u", 1, 1).cluster.start()):
                try:
                    call()
                    print("no error", flush=True)
                except godwit.errors.ForkError as e:
                    assert str(os.getpid()) in str(e) and str(os.getppid()) in str(e), e
            print("told", time.time() - begin < 5, flush=True)
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        c.worker.push(t, [1], np.ones((1, 2), np.float32))
        print(c.worker.pull(t, [1]).tolist())
        """
    )
    assert code == 0, err
    assert out.split("\n")[:2] == ["told True", "[[2.0, 2.0]]"]


def test_a_forked_child_changes_nothing_that_only_stands_for_the_cluster(run):
    code, out, err = run(
        """
        import os, sys, godwit
        c = godwit.init()
        t = c.table("t", 100, 2)  # no node exists yet
        pid = os.fork()
        if pid == 0:
            for call in (lambda: c.table("u", 10, 2), lambda: t.begin(rule="add"), godwit.init, godwit.Cluster, lambda: godwit.load("nowhere")):
                try:
                    print("no error", call(), flush=True)
                except godwit.errors.ForkError as e:
                    assert str(os.getpid()) in str(e) and str(os.getppid()) in str(e), e
            assert godwit.cluster().rank == 0  # by which batches are parted
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        print(c.worker.pull(t, [1]).tolist())
        """
    )
    assert code == 0, err
    assert out == "[[0.0, 0.0]]\n"


def test_rows_are_not_inherited_by_children(run):
    code, out, err = run(
        """
        import os, sys, godwit, numpy as np

        def own(pid):
            lines = open(f"/proc/{pid}/smaps_rollup").read().split("\\n")
            return sum(int(l.split()[1]) for l in lines if l.startswith("Pss:")) / 1024

        c = godwit.Cluster()
        n = 200_000
        t = c.table("t", n, 64)
        v, rows = np.ones((n, 64), np.float32), np.arange(n)
        c.worker.push(t, rows, v)
        before = own("self")
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(w)
            os.read(r, 1)
            os._exit(0)
        os.close(r)
        del v
        for part in np.array_split(rows, 50):
            c.worker.push(t, part, np.ones((len(part), 64), np.float32))
        print((own("self") + own(pid)) / before)
        os.close(w)
        os.waitpid(pid, 0)
        """
    )
    if "smaps_rollup" in err:
        pytest.skip("this kernel does not tell the memory of a process")
    assert code == 0, err
    assert float(out) < 1.1


def test_an_interrupt_ends_a_wait_soon(run):
    code, out, err = run(
        """
        import os, signal, threading, time, godwit
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
        c = godwit.Cluster(workers=2)
        t = c.table("t", 100, 2)
        c.start()
        waiting = threading.Event()
        wait = c._library.wait
        def told(*args):  # that the operation is under way
            waiting.set()
            return wait(*args)
        c._library.wait = told
        def interrupt():
            waiting.wait()
            at.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)
        least = 60.0
        for _ in range(20):  # other programs may have the processor: the least tells
            at = []
            waiting.clear()
            thread = threading.Thread(target=interrupt)
            thread.start()
            try:
                c.worker.barrier()
            except KeyboardInterrupt:
                least = min(least, time.monotonic() - at[0])
            thread.join()
            if least < 0.3:
                break
        print("after", least)
        print(c.worker.pull(t, [1]).tolist())
        """
    )
    assert code == 0, err
    lines = out.split("\n")
    assert float(lines[0].split()[1]) < 0.3 and lines[1] == "[[0.0, 0.0]]"


@pytest.mark.parametrize("how", ["open", "daemon", "operation", "atexit"])
def test_the_interpreter_ends_whatever_is_open(run, how):
    code, out, err = run(
        f"""
        import atexit, threading, time, godwit, numpy as np
        c = godwit.Cluster(workers=2)
        t = c.table("t", 100, 2)
        c.worker.push(t, [1], np.ones((1, 2), np.float32))
        if "{how}" == "daemon":
            threading.Thread(target=c.worker.barrier, daemon=True).start()
            time.sleep(0.2)
        if "{how}" == "operation":
            h = c.worker.pull_async(t, [1])
        if "{how}" == "atexit":
            atexit.register(lambda: print(c.worker.pull(t, [1]).tolist()))
        """
    )
    assert code == 0 and (err == "" or how == "daemon")  # whose thread gets an error


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_cluster_that_nobody_has_any_more_ends(nodes):
    c = godwit.Cluster(nodes=nodes)
    h = c.worker.pull_async(c.table("t", 1000, 2), ROWS[:1000])
    library, id = c._library, c._groups[0].id
    del c
    gc.collect()
    assert h.wait().shape == (1000, 2)  # who waits for it has it
    del h
    gc.collect()
    assert library.ready(id, 0) == -4


def test_other_threads_go_on_while_one_waits(run):
    code, out, err = run(
        """
        import threading, time, godwit
        c = godwit.Cluster(workers=2)
        c.table("t", 1, 1)
        c.start()
        th = threading.Thread(target=c.worker.barrier)
        th.start()
        n, end = 0, time.time() + 0.3
        while time.time() < end:
            n += 1
        c.workers[1].barrier()
        th.join()
        print(n)
        """
    )
    assert code == 0, err
    assert int(out) > 1000  # of a thread that had to wait for the interpreter's lock: about 6


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_processes_that_are_spawned_have_clusters_of_their_own(run, tmp_path):
    (tmp_path / "child.py").write_text(
        "import godwit\ndef f(x):\n    with godwit.Cluster() as c:\n        t = c.table('t', 10, 1, init=godwit.uniform(x, x))\n        return float(c.worker.pull(t, [1])[0, 0])\n"
    )
    code, out, err = run(
        f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import child, multiprocessing
        if __name__ == "__main__":
            print(child.f(1))
            with multiprocessing.get_context("spawn").Pool(2) as p:
                print(p.map(child.f, [2, 3]))
        """
    )
    assert code == 0, err
    assert out == "1.0\n[2.0, 3.0]\n"


def test_no_memory_for_rows_is_an_error(run):
    code, out, err = run(
        """
        import resource, numpy as np, godwit
        with godwit.Cluster() as c:
            t = c.table("t", 10**9, 1000)
            c.worker.pull(t, [0])
            used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + (300 << 20), resource.getrlimit(resource.RLIMIT_AS)[1]))
            try:
                for i in range(1000):
                    c.worker.push(t, np.arange(i * 1000, i * 1000 + 1000), np.ones((1000, 1000), np.float32))
            except MemoryError as e:
                print(type(e).__name__, "GiB of rows" in str(e))
        """
    )
    assert (code, out) == (0, "OutOfMemoryError True\n") or code != 0 and "memory" in err, err


CALLS = {
    "pull": lambda w, t, s: w.pull(t, ROWS),
    "once": lambda w, t, s: w.pull(t, ROWS, once=True),
    "look": lambda w, t, s: w._look(t, ROWS),
    "pull_async": lambda w, t, s: w.pull_async(t, ROWS),
    "push": lambda w, t, s: w.push(t, ROWS, ONES),
    "later": lambda w, t, s: w._push_later(t, ROWS, ONES, 0.0, 1.0, False),
    "set": lambda w, t, s: w.set(t, ROWS, ONES),
    "keep_state": lambda w, t, s: w.set(t, ROWS, ONES, keep_state=True),
    "state": lambda w, t, s: w.state(t, ROWS),
    "localize": lambda w, t, s: w.localize(t, ROWS),
    "pull_sample": lambda w, t, s: w.pull_sample(s, 100),
    "barrier": lambda w, t, s: w.barrier(),
}
ROWS, ONES = np.arange(2000), np.ones((2000, 2), np.float32)


@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
@pytest.mark.parametrize("name", CALLS)
def test_an_interrupt_as_soon_as_the_library_returns_leaves_nothing_under_way(name, twice, monkeypatch):
    under_way, again = [], [twice]

    def interrupted(call):
        def f(*args):
            code = call(*args[:-2], 0, args[-1])
            under_way.append((args[0], ctypes.c_uint64.from_address(args[-1]).value))
            raise KeyboardInterrupt if code >= 0 else AssertionError(code)

        return f

    def cancel(*args):
        if again.pop() if again else False:
            raise KeyboardInterrupt
        return real(*args)

    with godwit.Cluster(nodes=2, policy="static") as c:
        t = c.table("t", 10_000, 2)
        s = c.sampler(t)
        w, lib, real = c.worker, c._library, c._library.cancel
        c.start()
        sample = w.prepare_sample(s, 100)
        with monkeypatch.context() as m:
            m.setattr(lib, "cancel", cancel)
            for f in ("pull", "push", "set", "write", "read", "localize", "pull_sample", "barrier"):
                m.setattr(lib, f, interrupted(getattr(lib, f)))
            with pytest.raises(KeyboardInterrupt):
                CALLS[name](w, t, sample)
            gc.collect()
        assert len(under_way) == 1 and (under_way[0][1] or name != "barrier")
        for id, op in under_way:
            assert not op or lib.wait(id, op, 0) == -4  # the library does not know it any more: its buffers are free
        assert w.pull(t, [1]).shape == (1, 2)


def test_an_interrupt_before_an_operation_is_given_up_leaves_its_buffers(monkeypatch):
    def interrupt(frame, event, _):
        if event == "call" and frame.f_code is godwit.Handle.__del__.__code__:  # as a signal does that came just before
            sys.setprofile(None)
            raise KeyboardInterrupt

    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda x: told.append(x.exc_type))
    with godwit.Cluster(nodes=2) as c:
        c.table("t", 10, 1)
        c.start()
        buffer = np.zeros(10)
        there = weakref.ref(buffer)
        handle = c.worker._begin(c._library.barrier, c._groups[0].workers[0], (buffer,), None)
        del buffer
        assert not handle.done
        again = Handle(c.worker, handle._id, (), None)  # of the same operation, to wait for its end
        again._cell.value = handle._cell.value
        sys.setprofile(interrupt)
        del handle
        sys.setprofile(None)
        assert told == [KeyboardInterrupt] and there() is not None
        godwit.Handle.__new__(godwit.Handle)  # one that an interrupt kept from being made
        assert told == [KeyboardInterrupt]
        c.workers[1].barrier()
        again.wait()  # else the worker may still be in the barrier
        handle = c.worker._begin(c._library.barrier, c._groups[0].workers[0], (buffer := np.zeros(10),), None)
        there = weakref.ref(buffer)
        del buffer, handle  # as ever
        assert there() is None


def test_a_result_that_comes_with_an_interrupt_is_not_lost(cluster, monkeypatch):
    kill = ctypes.CDLL(None).kill  # stands for the library's wait: an interrupt comes, and it returns 0, which is success
    h = Handle(cluster.worker, os.getpid(), (), "values")
    h._cell.value = signal.SIGINT
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr(cluster._library, "wait", kill)
        with pytest.raises(KeyboardInterrupt):
            h.wait()
        assert not h.done
    finally:
        signal.signal(signal.SIGINT, before)
    assert h.wait() == "values" and h.done
