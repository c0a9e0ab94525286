"""The house: which module may import which, read from the source."""

import ast
import importlib
from pathlib import Path

import pytest

import medexam

ROOT = Path(medexam.__file__).parent
WORDS = {
    "errors",
    "quiet",
    "places",
    "fingerprints",
    "sentences",
    "tasks",
    "questions",
    "answer_key",
    "continuations",
    "model_identity",
    "predictions",
}
GROUND = {"specs"}
FLOOR_2 = {"datasets", "signatures", "metrics", "retrievers", "serve"}
MAY_IMPORT = {
    "specs": set(),
    **dict.fromkeys(FLOOR_2, GROUND),
    "programs": GROUND | {"signatures", "retrievers.base"},
    "experiments": GROUND | FLOOR_2 | {"programs"},
    "cli": GROUND | FLOOR_2 | {"programs", "experiments"},
}
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


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_down(path: Path) -> None:
    inner = path.relative_to(ROOT).parts
    wing = inner[0] if len(inner) > 1 else None
    for name in _imports(path):
        package, *rest = name.split(".")
        if package != "medexam" or not rest:
            continue
        target = rest[0]
        if target in WORDS or target == wing or target == "__version__":
            continue
        allowed = MAY_IMPORT.get(wing, set()) if wing else set()
        assert target in allowed or ".".join(rest[:2]) in allowed, f"{path.relative_to(ROOT)} may not import {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_floors_0_1_and_5_import_nothing_heavy(path: Path) -> None:
    inner = path.relative_to(ROOT).parts
    if len(inner) == 1 or inner[0] in {"specs", "cli"}:
        roots = {name.split(".")[0] for name in _imports(path, at_module_level=True)}
        assert not roots & HEAVY, f"{path.relative_to(ROOT)} imports {roots & HEAVY} at module level"


def test_packages_hold_imports_only() -> None:
    for path in MODULES:
        if path.name == "__init__.py" and path.parent != ROOT:
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
                is_all = isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
                assert isinstance(node, ast.ImportFrom) or is_docstring or is_all, f"{path}: {ast.unparse(node)}"


def test_every_module_says_why_it_exists() -> None:
    silent = [str(path) for path in MODULES if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))]
    assert not silent


@pytest.mark.parametrize("wing", ["specs", "datasets", "signatures", "metrics", "serve", "programs"])
def test_a_wing_lists_what_it_offers(wing: str) -> None:
    package = importlib.import_module(f"medexam.{wing}")
    assert len(package.__all__) == len(set(package.__all__))
    assert all(hasattr(package, name) for name in package.__all__)
