"""The README's Python example runs as it is printed."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.model
README = Path(__file__).parents[2] / "README.md"


def test_the_python_example_prints_an_option() -> None:
    _, example = README.read_text(encoding="utf-8").split("The same programs are DSPy modules:\n")
    code = textwrap.dedent(example[: example.index("\n## ")])
    # In a process of its own: it configures DSPy for all of one.
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) in range(1, 6)
