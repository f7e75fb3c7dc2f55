"""The types that the package tells: a user's program is checked by mypy."""

import os
import pathlib
import subprocess
import sys

import pytest

import godwit

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("mypy", reason="mypy is not installed")

PROGRAM = """
from __future__ import annotations
import torch
import godwit

class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.users = godwit.nn.Embedding(1000, 8, padding_idx=0, name="users", init=godwit.uniform(-0.1, 0.1))
        self.tags = godwit.nn.EmbeddingBag(500, 4, mode="sum")

def main() -> None:
    cluster = godwit.init(seed=1, workers=2)
    model = Model()
    opt = godwit.optim.Adagrad(godwit.parameters(model), lr=0.1)
    torch.optim.lr_scheduler.StepLR(opt, 1).step()
    for batch in godwit.lookahead([torch.tensor([1])], keys=lambda b: {model.users: b}):
        opt.zero_grad()
        model(batch).sum().backward()
        godwit.clip_grad_norm_(godwit.parameters(model), 1.0)
        opt.step()
    table = cluster.table("x", rows=10, dim=2)
    cluster.worker.push(table, [1], [[1.0, 2.0]])
    cluster.worker.pull_async(table, [1, 2]).wait(timeout=1.0)
    with godwit.without_rows():
        place: str = cluster.save("folder", {"epoch": 1}, keep=2)
    number: int = godwit.load(place).number
    plain: torch.nn.Module = godwit.to_torch(model, ids={model.users: [1]})
    try:
        print(number, plain)
    except godwit.errors.NodeLostError as e:
        print(e)
"""
WRONG = [
    ("godwit.init(wrkers=2)", "call-arg"),
    ('godwit.init().table("x", "10", 2)', "arg-type"),
    ("godwit.nn.Embedding(10)", "call-arg"),
    ("godwit.nosuch()", "attr-defined"),
]


@pytest.fixture(scope="module")
def mypy():
    """Checks by mypy, in a folder. What it finds out about torch, which takes it half a minute, is kept in the cache of the user for the next check."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "godwit", "mypy")

    def check(folder, *what):
        command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", str(cache), *what]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True)

    return check


def test_a_program_is_checked_and_mistakes_are_told(mypy, tmp_path):
    (tmp_path / "right.py").write_text(PROGRAM)
    (tmp_path / "wrong.py").write_text("import godwit\n" + "".join(line + "\n" for line, _ in WRONG))
    p = mypy(tmp_path, "right.py", "wrong.py")
    told = [line for line in p.stdout.splitlines() if ": error:" in line]
    assert len(told) == len(WRONG), (p.stdout, p.stderr)
    for i, (line, (_, kind)) in enumerate(zip(told, WRONG)):
        assert line.startswith(f"wrong.py:{i + 2}:") and line.endswith(f"[{kind}]"), p.stdout


def test_the_package_itself_is_typed(mypy):
    p = mypy(pathlib.Path(godwit.__file__).parent.parent, "-p", "godwit")
    assert p.returncode == 0, p.stdout + p.stderr
