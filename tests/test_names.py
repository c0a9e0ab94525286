"""Names that say what a value is: counted, and held below the figures that are stated here.

A participle or an adjective (`found`, `said`, `whole`) names how a value came to be; a noun names what it is. Ruff's
D401 holds that docstrings of functions begin with a verb.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import medexam

ROOT = Path(medexam.__file__).parent
_WORDS = """
added alike asked began begun beside brought chosen counted done drawn dropped former found given gone got
heard held judged kept known latter left made marked meant mine moved named ours owed reached rest said seen
sent shown spent taken theirs thing things thought told wanted whole written
"""
VAGUE = frozenset(_WORDS.split())
MOST_VAGUE = 0.005
"""Share of all bindings. Flags of commands and keys of stored files are names that users know, and stay."""
MOST_DOUBLE = 15
"""Public names that several modules define: commands beside the functions of the Python interface that do the same."""


@cache
def _trees() -> Mapping[str, ast.Module]:
    paths = sorted(ROOT.rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def _bindings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of each variable, argument, field and loop variable."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg


def _is_vague(name: str) -> bool:
    words = name.strip("_")
    return words in VAGUE or (words.rpartition("_")[2] in VAGUE and "_" in words)


def _vague(trees: Mapping[str, ast.Module]) -> tuple[list[str], int]:
    """The vague bindings with their places, and the number of all bindings."""
    bindings = [(path, *binding) for path, tree in trees.items() for binding in _bindings(tree)]
    return [f"{path}:{line} {name}" for path, line, name in bindings if _is_vague(name)], len(bindings)


def _double(trees: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """Public classes and functions that several modules define -> those modules."""
    modules = defaultdict(list)
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
                modules[node.name].append(path)
    return {name: places for name, places in modules.items() if len(places) > 1}


def _parse(source: str) -> Mapping[str, ast.Module]:
    return {"one.py": ast.parse(source)}


def _shown(lines: Iterable[str]) -> str:
    return "\n".join(lines)


def test_a_name_says_what_its_value_is() -> None:
    vague, bindings = _vague(_trees())
    assert len(vague) <= MOST_VAGUE * bindings, _shown(vague)


def test_a_public_name_has_one_definition() -> None:
    double = _double(_trees())
    assert len(double) <= MOST_DOUBLE, _shown(f"{name}: {', '.join(places)}" for name, places in double.items())


def test_participles_are_counted_wherever_a_name_is_bound() -> None:
    vague, bindings = _vague(_parse("def f(said, reply):\n    for found in reply:\n        rows_kept, row = found\n"))
    assert [name.split()[1] for name in vague] == ["said", "found", "rows_kept"]
    assert bindings == 5


def test_private_names_may_repeat() -> None:
    one, other = (ast.parse(f"class _Row: ...\nclass Page: ...\ndef {name}(): ...") for name in ("read", "write"))
    assert _double({"one.py": one, "other.py": other}) == {"Page": ["one.py", "other.py"]}
