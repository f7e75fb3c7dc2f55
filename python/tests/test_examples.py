"""The programs of examples/python, at small sizes, on one rank and on four."""

import argparse
import difflib
import json
import os
import re
import runpy
import sys

import pytest

import godwit

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

HERE = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "python")
if not os.path.exists(HERE):
    pytest.skip("the programs are not beside the tests", allow_module_level=True)

# Several programs one after the other, so that torch is imported once.
CTR = "ctr.py --examples 30000 --rows 3000 --batch 256 --rows-lr 0.1"
KGE = "kge.py --nodes 1000 --degree 16 --epochs 6 --dim 32 --batch 256"  # enough edges that it does not learn them by heart
SMALL = [CTR, "gnn.py --nodes 1000 --epochs 5 --batch 256", KGE]
PROGRAM = f"""
import os, runpy, sys, torch
torch.set_num_threads(1)
sys.path.insert(0, {HERE!r})
for line in %r:
    sys.argv = line.split()
    runpy.run_path(os.path.join({HERE!r}, sys.argv[0]), run_name="__main__")
"""


def results(out):
    return [json.loads(line) for line in re.findall(r"\{.*\}", out)]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return str(tmp_path_factory.mktemp("criteo") / "day.tsv")


def test_on_one_rank(run, written):
    lines = [*SMALL, CTR + " --frozen", f"{CTR} --write {written}", f"{CTR} --data {written}"]
    code, out, err = run(PROGRAM % (lines,))
    assert code == 0, err
    ctr, gnn, kge, frozen, file = results(out)
    assert ctr["auc"] >= frozen["auc"] + 0.02, (ctr, frozen)
    assert file["auc"] >= frozen["auc"] + 0.02, (file, frozen)
    assert gnn["mrr"] > 0.3 and kge["mrr"] > 0.33  # chance has 0.05
    for r in (ctr, gnn, kge):
        assert r["ranks"] == 1 and r["without_message"] == 100


def test_on_four_ranks(tmp_path, torchrun):
    code, out, err = torchrun(tmp_path, PROGRAM % (SMALL,), 4)
    assert code == 0, err[-5000:]
    ctr, gnn, kge = results(out)
    assert ctr["auc"] > 0.65 and gnn["mrr"] > 0.3 and kge["mrr"] > 0.33
    for r in (ctr, gnn, kge):
        assert r["ranks"] == 4 and r["seconds"] > 0 and r["cpu_us_an_example"] > 0


def test_few_lines_differ_from_a_program_without_godwit():
    plain, ours = (open(os.path.join(HERE, f), encoding="utf-8").read().split('"""', 2)[2].split("\n") for f in ("kge_torch.py", "kge.py"))
    changed = [d for d in difflib.ndiff(plain, ours) if d.startswith("+ ")]
    assert 0 < len(changed) <= 10, changed


@pytest.fixture
def program(monkeypatch):
    """Runs one of the programs in this process, which has imported torch."""
    monkeypatch.syspath_prepend(HERE)

    def program(line):
        monkeypatch.setattr(sys, "argv", line.split())
        runpy.run_path(os.path.join(HERE, sys.argv[0]), run_name="__main__")

    yield program
    godwit.cluster().close()  # theirs
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(HERE):
            del sys.modules[name]


def test_what_would_change_nothing_or_train_nothing_is_refused(program, capsys, monkeypatch):
    import common

    for option in ("kge.py --nodes 100 --frozen", "kge_torch.py --nodes 100 --torch"):
        with pytest.raises(SystemExit, match="2"):
            program(option)
        assert f"arguments: {option.split()[-1]}" in capsys.readouterr().err
    with pytest.raises(ValueError, match="choose a smaller --batch"):
        program("kge.py --nodes 100 --batch 2000")
    monkeypatch.setattr(common, "WORLD", 4)
    with pytest.raises(ValueError, match="each of 4 ranks"):
        common.Run(argparse.Namespace(batch=2, seed=1, torch=False))


def test_generated_examples_do_not_depend_on_who_asks(program):
    import ctr

    g = ctr.Generated(argparse.Namespace(rows=3000, seed=1, batch=8, examples=8))
    whole, parts = g.part(0, 8), [g.part(4 * r, 4) for r in range(2)]
    assert all(torch.equal(x, torch.cat(y)) for x, y in zip(whole, zip(*parts)))
    label, numbers, values = g.raw(0, 50_000)
    assert 3.9 < numbers.mean() < 4.1 and 19 < numbers.var() < 21, (numbers.mean(), numbers.var())  # a geometric distribution
    assert not torch.equal(g.part(0, 8)[2], g.part(8, 8)[2])
