"""What a process does to the library: import, fork, interrupts, its end."""

import os

import pytest


def test_import_is_quick_and_starts_no_thread(run):
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
    assert float(took) < 0.05


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
        for call in (c.worker.barrier,):
            at = []
            def interrupt():
                time.sleep(0.5)
                at.append(time.monotonic())
                os.kill(os.getpid(), signal.SIGINT)
            threading.Thread(target=interrupt).start()
            try:
                call()
            except KeyboardInterrupt:
                print("after", time.monotonic() - at[0])
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
