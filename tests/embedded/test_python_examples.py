"""The Python that readers find runs as it is printed: in README.md, in two pages of `docs`, and in the notebooks.

Each runs from top to bottom in a process of its own. Those of pages and notebooks run inside an event loop, as in a
notebook, in forks of one that has imported what they import; Jupyter is not needed. A drawn model answers.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from medexam.serve import smollm2_folder

pytestmark = pytest.mark.model
ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
FORKS = """
import contextlib, json, os, sys, traceback
import accelerate, dspy, matplotlib.figure, mlflow, pandas, scipy.optimize, torch._dynamo
import transformers.models.llama.modeling_llama, transformers.generation.utils
import alembic.command, matplotlib.backends.backend_svg
import mlflow.store.tracking.sqlalchemy_store, mlflow.tracing.client
import medexam
from medexam.measures import find_benchmark
from medexam.experiments import Runner
from medexam.serve import EmbeddedEngine

medexam.run, medexam.optimize, medexam.Evaluate, medexam.lm  # what stands behind a name is imported with it

for line in sys.stdin:
    cells, check, folder, cache = json.loads(line)
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            os.dup2(write, 1), os.dup2(write, 2), os.close(read)
            # The streams of the parent know what kind of file they wrote to, which may be another kind.
            sys.stdout, sys.stderr = (open(number, "w", buffering=1, closefd=False) for number in (1, 2))
            os.chdir(folder)
            os.environ["MEDEXAM_CACHE"] = cache
            exec({script!r}, {{"cells": cells, "check": check}})
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush(), sys.stderr.flush()
            os._exit(code)
    os.close(write)
    with os.fdopen(read, errors="replace") as stream:
        said = stream.read()
    print(json.dumps([os.waitpid(pid, 0)[1], said]), flush=True)
"""
SCRIPT = """
import ast, asyncio, linecache, os, shlex, sys
from pathlib import Path
from medexam.cli import run_command

async def notebook():
    space = {}
    for number, cell in enumerate(cells):
        head, _, rest = cell.partition("\\n")
        if head.startswith("%%writefile "):
            Path(head.split()[1]).write_text(rest, encoding="utf-8")
            continue
        if head.startswith("!medexam "):
            pid = os.fork()
            if not pid:
                sys.argv = shlex.split(head[1:])
                try:
                    run_command()
                except SystemExit as end:
                    os._exit(end.code or 0)
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
            continue
        tree = ast.parse(cell)
        shown = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        # As in a notebook, what a cell defines has a source.
        name = f"<cell {number}>"
        linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)
        exec(compile(tree, name, "exec"), space)
        if shown is not None:
            value = eval(ast.unparse(shown), space)
            assert repr(value)
            assert value is not None or "print(" in cell
    return space

sys.path.insert(0, "")
space = asyncio.run(notebook())
assert eval(check), "it did not end as it should"
"""
NOTEBOOKS = {
    "first_run": "space['runs'].complete and Path('runs/first_run.html').is_file()",
    "own_strategy": "space['better'].finished and space['demonstrated'].complete",
    "own_questions": "space['runs'].complete and Path('runs/own_questions.html').is_file()",
}
PAGE = """
space["scores"][0].total < 0
and Path("report.html").is_file()
"""
ROUTED = """
(space["result"].n, space["result"].pending, space["improved"].n) == (6, 0, 6)
and space["result"].run.id != space["improved"].run.id
and Path("routing.html").is_file()
"""


@pytest.fixture(scope="module")
def drawn_cache(tmp_path_factory, tiny_llama) -> Path:
    """A cache in which a drawn model is found as SmolLM2."""
    models = tmp_path_factory.mktemp("drawn") / "models"
    models.mkdir()
    (models / smollm2_folder().name).symlink_to(tiny_llama)
    return models.parent


@pytest.fixture(scope="module")
def run_cells() -> Iterator[Callable[..., None]]:
    """`run_cells(cells, check, folder, cache)`: run them in a fork, and check how they end."""
    code = FORKS.format(script=SCRIPT)
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # A fork has none of the threads that torch would have made before.
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as forks:
        assert forks.stdin is not None
        assert forks.stdout is not None

        def call(cells: list[str], check: str, folder: Path, cache: Path) -> None:
            forks.stdin.write(json.dumps((cells, check, str(folder), str(cache))) + "\n")
            forks.stdin.flush()
            status, said = json.loads(forks.stdout.readline())
            assert status == 0, said[-3000:]

        yield call
        forks.stdin.close()


def test_the_readmes_example_prints_an_option(drawn_cache, tmp_path, runs_dir) -> None:
    _, example = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## Python\n")
    lines = example.partition("\n## ")[0].splitlines()
    code = "\n".join(line[4:] for line in lines if line.startswith("    "))
    env = {**os.environ, "MEDEXAM_CACHE": str(drawn_cache)}
    said = subprocess.check_output([sys.executable, "-c", code], cwd=tmp_path, env=env, text=True)
    assert "Against zero_shot" in said
    assert int(said.splitlines()[-1]) in range(1, 6)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "least", "check"), [("python", 9, PAGE), ("dspy", 2, ROUTED)])
def test_every_snippet_of_a_page_runs(name, least, check, run_cells, drawn_cache, tmp_path, runs_dir) -> None:
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    snippets = re.findall(r"^```python\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    assert len(snippets) >= least
    run_cells(snippets, f"({check})", tmp_path, drawn_cache)


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.ipynb")))
def test_a_notebook_runs(name, run_cells, drawn_cache, tmp_path) -> None:
    folder = shutil.copytree(
        EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("runs", "proposed.yaml", "subject_first.py")
    )
    book = json.loads((folder / f"{name}.ipynb").read_text(encoding="utf-8"))
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] for cell in code), "notebooks are kept without outputs"
    run_cells(["".join(cell["source"]) for cell in code], NOTEBOOKS[name], folder, drawn_cache)
