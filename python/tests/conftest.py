import os
import signal
import subprocess
import sys
import textwrap

import pytest

import godwit


@pytest.fixture
def cluster():
    with godwit.Cluster(seed=1) as c:
        yield c


@pytest.fixture(params=[1, 3], ids=["one node", "three nodes"])
def clusters(request):
    with godwit.Cluster(seed=1, nodes=request.param) as c:
        yield c


@pytest.fixture
def run():
    """Runs a program in another process, and returns its exit code, output and error output."""

    def run(program, timeout=600):  # a machine may be busy
        p = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=timeout)
        return p.returncode, p.stdout, p.stderr

    return run


@pytest.fixture
def torchrun():
    """Runs a program by torchrun, and returns its exit code, output and error output."""

    def torchrun(tmp_path, program, ranks, *options, timeout=300):
        file = tmp_path / "train.py"
        file.write_text(textwrap.dedent(program))
        env = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
        p = subprocess.Popen(
            [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", *options, str(file)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, cwd=tmp_path, start_new_session=True,
        )
        try:
            out, err = p.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            out, err = p.communicate()
            pytest.fail(f"torchrun does not end: {out[-3000:]} {err[-3000:]}")
        return p.returncode, out, err

    return torchrun
