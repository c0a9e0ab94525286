"""Names that say what a value is: counted, and held below the figures that are stated here.

A participle or an adjective (`found`, `said`, `whole`) names how a value came to be; a noun names what it is. Ruff's
D401 holds that docstrings of functions begin with a verb.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

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


class Names(NamedTuple):
    """What a module binds and defines."""

    bindings: tuple[tuple[int, str], ...]
    """Line and name of each variable, argument, field and loop variable."""
    public: tuple[str, ...]
    """Its classes and functions without an underscore."""


@cache
def _modules() -> Mapping[str, Names]:
    """Path -> names; the trees of all modules would fill half a gigabyte."""
    paths = sorted(ROOT.rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): _read(path.read_text(encoding="utf-8")) for path in paths}


def _read(source: str) -> Names:
    tree = ast.parse(source)
    defined = (node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef))
    return Names(tuple(_bindings(tree)), tuple(node.name for node in defined if node.name[0] != "_"))


def _bindings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg


def _is_vague(name: str) -> bool:
    words = name.strip("_")
    return words in VAGUE or (words.rpartition("_")[2] in VAGUE and "_" in words)


def _vague(modules: Mapping[str, Names]) -> tuple[list[str], int]:
    """The vague bindings with their places, and the number of all bindings."""
    bindings = [(path, *binding) for path, names in modules.items() for binding in names.bindings]
    return [f"{path}:{line} {name}" for path, line, name in bindings if _is_vague(name)], len(bindings)


def _double(modules: Mapping[str, Names]) -> dict[str, list[str]]:
    """Public classes and functions that several modules define -> those modules."""
    places = defaultdict(list)
    for path, names in modules.items():
        for name in names.public:
            places[name].append(path)
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def _shown(lines: Iterable[str]) -> str:
    return "\n".join(lines)


def test_a_name_says_what_its_value_is() -> None:
    vague, bindings = _vague(_modules())
    assert len(vague) <= MOST_VAGUE * bindings, _shown(vague)


def test_a_public_name_has_one_definition() -> None:
    double = _double(_modules())
    assert len(double) <= MOST_DOUBLE, _shown(f"{name}: {', '.join(places)}" for name, places in double.items())


def test_participles_are_counted_wherever_a_name_is_bound() -> None:
    vague, bindings = _vague(
        {"one.py": _read("def f(said, reply):\n    for found in reply:\n        rows_kept, row = found\n")}
    )
    assert [name.split()[1] for name in vague] == ["said", "found", "rows_kept"]
    assert bindings == 5


def test_private_names_may_repeat() -> None:
    one, other = (_read(f"class _Row: ...\nclass Page: ...\ndef {name}(): ...") for name in ("read", "write"))
    assert _double({"one.py": one, "other.py": other}) == {"Page": ["one.py", "other.py"]}
