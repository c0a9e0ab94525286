"""What type checkers say of a user's program beside the installed wheel, and of the lines of `docs/python.md`."""

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from suite.isolation import MODELS

pytestmark = pytest.mark.nightly
ROOT = Path(__file__).parents[1]
PROGRAM = "typed_program.py"
MYPY = """
[mypy]
strict = True
# DSPy's classes have no types that mypy reads.
disallow_subclassing_any = False
[mypy-dspy.*]
ignore_missing_imports = True
# Nothing of theirs is in the types that users get, and they take a minute.
[mypy-transformers.*,torch.*,litellm.*,mlflow.*,ray.*,openai.*,optuna.*,matplotlib.*,sentence_transformers.*]
follow_imports = skip
"""
MISTAKES = """\
import medexam
from medexam.specs import ModelSpec
ModelSpec(temperature="x")
medexam.plan(3)
medexam.load_run("x").accuracy.upper()
medexam.nothing
"""
WRONG_LINES = {3, 4, 5, 6}


@pytest.fixture(scope="module")
def python(pip_and_setuptools, tmp_path_factory) -> Path:
    """The interpreter of an environment with the wheel, and from this one everything else; the programs lie beside."""
    folder = tmp_path_factory.mktemp("user")
    source, ignored = folder / "source", shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "medexam", source / "medexam", ignore=ignored)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip"]
    offline = ["-q", "--no-deps", "--no-index"]
    subprocess.run([*pip, "wheel", *offline, "--no-build-isolation", "-w", str(folder), str(source)], check=True)
    venv.create(folder / "venv")
    python = folder / "venv" / "bin" / "python"
    site = next((folder / "venv" / "lib").glob("python*")) / "site-packages"
    subprocess.run([*pip, "install", *offline, "--target", str(site), *map(str, folder.glob("*.whl"))], check=True)
    (site / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    shutil.rmtree(source)
    shutil.copy(ROOT / "tests" / PROGRAM, folder)
    lines = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(encoding="utf-8"), re.DOTALL)
    (folder / "lines_of_the_docs.py").write_text("\n".join(lines), encoding="utf-8")
    (folder / "mistakes.py").write_text(MISTAKES, encoding="utf-8")
    return python


def test_mypy_accepts_a_users_program_and_the_docs(python) -> None:
    pytest.importorskip("mypy")
    folder = python.parents[2]
    (folder / "mypy.ini").write_text(MYPY, encoding="utf-8")
    # What it found out about the packages of others is kept for the next time; of this one it is made anew each time.
    cache = ["--cache-dir", str(MODELS.parent / "mypy")]
    command = [sys.executable, "-m", "mypy", *cache, "--python-executable", str(python), "--no-error-summary"]
    done = subprocess.run(
        [*command, PROGRAM, "lines_of_the_docs.py", "mistakes.py"],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    assert {line.split(" error:")[0] for line in done.stdout.splitlines()} == {
        f"mistakes.py:{number}:" for number in WRONG_LINES
    }, done.stdout + done.stderr


def test_pyright_accepts_a_users_program(python) -> None:
    pyright = shutil.which("basedpyright")
    if pyright is None:
        pytest.skip("needs the command basedpyright, of the package of that name")
    folder = python.parents[2]
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}', encoding="utf-8")
    command = [pyright, "--outputjson", "--pythonpath", str(python), PROGRAM, "mistakes.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    found = json.loads(done.stdout)["generalDiagnostics"]
    assert {(Path(each["file"]).name, each["range"]["start"]["line"] + 1) for each in found} == {
        ("mistakes.py", number) for number in WRONG_LINES
    }, done.stdout
