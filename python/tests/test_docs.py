import doctest
import os

import pytest

import godwit


def test_the_examples_of_the_package():
    assert doctest.testmod(godwit).failed == 0


def test_the_examples_of_the_documentation():
    file = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "python.md")
    if not os.path.exists(file):
        pytest.skip("the documentation is not beside the tests")
    result = doctest.testfile(file, module_relative=False, encoding="utf-8")
    assert result.attempted > 10 and result.failed == 0
