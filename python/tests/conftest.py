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
