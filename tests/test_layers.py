"""The house: which module may import which, and how many stand in a room, read from the source."""

import ast
import importlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import medexam

ROOT = Path(medexam.__file__).parent
GROUND = {"specs"}
FLOOR_2 = {"datasets", "signatures", "metrics", "retrievers", "serve"}
MAY_IMPORT = {
    "specs": set(),
    **dict.fromkeys(FLOOR_2, GROUND),
    "programs": GROUND | {"signatures", "retrievers.base"},
    "benchmarks": GROUND | {"datasets", "metrics"},
    "experiments": GROUND | FLOOR_2 | {"programs", "benchmarks"},
    "cli": GROUND | FLOOR_2 | {"programs", "benchmarks", "experiments"},
}
"""Wing -> the wings, or single modules of them, that it may import beside itself and the modules at the root."""
INNER_FLOORS = {
    "experiments": (
        *("store", "plan", "score", "compare"),
        *("report", "report.plots", "report.papers", "report.page", "track"),
        *(
            "run",
            "run.workers",
            "run.ray",
            "imports",
            "exports",
            "entry",
            "audit",
            "translate",
            "finetune",
            "optimize",
            "reproduce",
            "api",
        ),
    ),
    "serve": (
        *(
            "contract",
            "chat_messages",
            "choice_schema",
            "thinking",
            "request_settings",
            "waits",
            "network",
            "pool",
            "logprobs",
            "local_model",
            "discovery",
            "launch",
            "cluster",
        ),
        *("engines", "batches", "naming", "build", "", "diagnostics"),
    ),
    "benchmarks": ("resampling", "answers", "paired", "base", "choice", "words", "registry"),
    "metrics": ("", "cliniqlink", "paired", "contamination"),
    "programs": ("base", "controls", "orders", "likelihood", "asking", "retrieval", "", "combining", "building"),
    "datasets": (
        *("", "casimedicos", "own", "altering", "readers", "loading", "pictures", "fetching", "checking", "translate"),
        *("build.pages", "build"),
    ),
    "cli": ("options", "terminal", "help", "progress", "views", "data", "training", "stored", "serving", ""),
}
"""Wing -> its rooms from the ground up; a room imports itself and those before it. `""`: modules beside the rooms."""
MOST_MODULES = 20
HEAVY = {
    "dspy",
    "torch",
    "transformers",
    "faiss",
    "mlflow",
    "litellm",
    "vllm",
    "datasets",
    "pyarrow",
    "scipy",
    "sentence_transformers",
    "sklearn",
    "statsmodels",
}
MODULES = sorted(ROOT.rglob("*.py"))


def _imports(path: Path, *, at_module_level: bool = False) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = _module_level(tree) if at_module_level else ast.walk(tree)
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _module_level(tree: ast.Module) -> list[ast.stmt]:
    """Statements that run on import; what stands under TYPE_CHECKING does not."""
    return [node for node in tree.body if not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.If))]


def _find_arrows(root: Path) -> list[tuple[str, str]]:
    """Each import within the package under `root`: dotted paths of the module and of what it imports."""
    found = []
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        here = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found += [(here, name.removeprefix("medexam.")) for name in _imports(path) if name.startswith("medexam.")]
    return found


def _faults(root: Path) -> Iterator[str]:
    """What stands against the floors, the inner floors and the size of rooms in the package under `root`."""
    wings = {path.name for path in root.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    yield from (f"{wing} stands on no floor" for wing in sorted(wings - MAY_IMPORT.keys()))
    for here, target in _find_arrows(root):
        wing, other = (name.split(".")[0] if name.split(".")[0] in wings else "" for name in (here, target))
        if wing == other:
            if wing in INNER_FLOORS and here != wing and _floor(wing, target) > _floor(wing, here):
                yield f"{here} may not import {target}: it stands above"
        elif other and here and not {other, ".".join(target.split(".")[:2])} & MAY_IMPORT.get(wing, set()):
            yield f"{here} may not import {target}"
    for folder in sorted({path.parent for path in root.rglob("*.py")}):
        modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        if len(modules) > MOST_MODULES:
            yield f"{folder.relative_to(root)} holds {len(modules)} modules, over {MOST_MODULES}"
        yield from (
            f"{path.relative_to(root)} is called like its package" for path in modules if path.stem == folder.name
        )


def _floor(wing: str, name: str) -> int:
    """Where the longest listed room that holds `name` stands in its wing."""
    floors, parts = INNER_FLOORS[wing], name.split(".")[1:]
    rooms = (".".join(parts[:length]) for length in range(len(parts), -1, -1))
    return floors.index(next(room for room in rooms if room in floors or not room))


def test_every_import_goes_down() -> None:
    assert not list(_faults(ROOT))


@pytest.mark.parametrize(
    ("module", "added"),
    [
        ("experiments/store/paths.py", "from medexam.experiments.report.tables import Table"),
        ("experiments/plan/words.py", "from medexam.experiments.score import current"),
        ("serve/network/retry.py", "from medexam.serve.pool.server_pool import Server"),
        ("metrics/board.py", "from medexam.datasets import ExamSet"),
        ("questions.py", "from medexam.specs import ModelSpec"),
    ],
)
def test_an_arrow_that_points_up_is_found(tmp_path: Path, module: str, added: str) -> None:
    root = tmp_path / "medexam"
    shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns("*.pyc", "*.gz", "*.json"))
    with (root / module).open("a", encoding="utf-8") as stream:
        stream.write(f"\n{added}\n")
    (fault,) = _faults(root)
    assert fault.startswith(module.removesuffix(".py").replace("/", "."))


def test_a_crowded_room_is_found(tmp_path: Path) -> None:
    root = tmp_path / "medexam"
    shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns("*.pyc", "*.gz", "*.json"))
    for number in range(MOST_MODULES + 1):
        (root / "experiments" / "score" / f"more_{number}.py").write_text('"""More."""\n', encoding="utf-8")
    (fault,) = _faults(root)
    assert fault.startswith("experiments/score holds")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_floors_0_1_and_5_import_nothing_heavy(path: Path) -> None:
    inner = path.relative_to(ROOT).parts
    if len(inner) == 1 or inner[0] in {"specs", "cli"}:
        roots = {name.split(".")[0] for name in _imports(path, at_module_level=True)}
        assert not roots & HEAVY, f"{path.relative_to(ROOT)} imports {roots & HEAVY} at module level"


def test_packages_hold_imports_only() -> None:
    """At most delayed by a `__getattr__`, where a module of the package is needed without the heavy others."""
    for path in MODULES:
        if path.name == "__init__.py" and path.parent != ROOT:
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
                is_all = isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
                is_delay = isinstance(node, ast.FunctionDef) and node.name == "__getattr__"
                is_typing = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
                is_import = isinstance(node, ast.ImportFrom) or is_delay or is_typing
                assert is_import or is_docstring or is_all, f"{path}: {ast.unparse(node)}"


def test_every_module_says_why_it_exists() -> None:
    silent = [str(path) for path in MODULES if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))]
    assert not silent


@pytest.mark.parametrize("wing", ["specs", "datasets", "signatures", "metrics", "serve", "programs"])
def test_a_wing_lists_what_it_offers(wing: str) -> None:
    package = importlib.import_module(f"medexam.{wing}")
    assert len(package.__all__) == len(set(package.__all__))
    assert all(hasattr(package, name) for name in package.__all__)


FOREIGN = {"self._scorer._model", "self._scorer._tokenizer"}
"""Fields of bert-score, which have no public way."""


def test_nobody_reaches_into_another_objects_private_fields() -> None:
    reached = []
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
                owner = ast.unparse(node.value)
                own = owner in {"self", "cls", "super()"} or node.attr in {"_asdict", "_exit"}
                if not own and f"{owner}.{node.attr}" not in FOREIGN:
                    reached.append(f"{path.relative_to(ROOT)}:{node.lineno}: {owner}.{node.attr}")
    assert not reached
