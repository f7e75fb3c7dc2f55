import doctest
import os
import re

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


def test_every_error_and_variable_is_documented():
    file = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "python.md")
    if not os.path.exists(file):
        pytest.skip("the documentation is not beside the tests")
    text = open(file, encoding="utf-8").read()
    errors = [x for x in vars(godwit.errors).values() if isinstance(x, type) and issubclass(x, godwit.GodwitError)]
    package = os.path.dirname(godwit.__file__)
    sources = "".join(open(os.path.join(package, f), encoding="utf-8").read() for f in os.listdir(package) if f.endswith(".py"))
    variables = set(re.findall(r"\bGODWIT_[A-Z]+\b", sources))
    assert len(errors) > 5 and "GODWIT_TOKEN" in variables
    assert [n for n in [*(e.__name__ for e in errors), *sorted(variables)] if f"`{n}`" not in text] == []
