import doctest
import os

import pytest

import godwit


def test_the_examples_of_the_package():
    from godwit import _ids

    assert doctest.testmod(godwit).failed == doctest.testmod(_ids).failed == 0


def test_the_examples_of_the_documentation():
    file = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "python.md")
    if not os.path.exists(file):
        pytest.skip("the documentation is not beside the tests")
    result = doctest.testfile(file, module_relative=False, encoding="utf-8")
    assert result.attempted > 10 and result.failed == 0


def test_the_quick_start_of_the_readme(run):
    pytest.importorskip("torch", reason="torch is not installed")
    file = os.path.join(os.path.dirname(__file__), "..", "..", "README.md")
    if not os.path.exists(file):
        pytest.skip("the README is not beside the tests")
    program = open(file, encoding="utf-8").read().split("```python\n")[1].split("```")[0]
    assert len(program.strip().split("\n")) <= 15
    code, out, err = run("import torch; torch.manual_seed(1)\n" + program)
    assert code == 0, err
    assert out.startswith("loss ") and float(out.split()[1]) < 0.35  # 0.69 is chance
