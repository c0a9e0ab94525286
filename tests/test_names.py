"""Names that say what a value is: counted, and held below the figure that is stated here.

A participle or an adjective (`found`, `said`, `whole`) names how a value came to be; a noun names what it is. Ruff's
D401 holds that docstrings of functions begin with a verb.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import medexam

ROOT = Path(medexam.__file__).parents[1]
_WORDS = """
added alike asked began begun beside brought chosen counted done drawn dropped former found given gone got
heard held judged kept known latter left made marked meant mine moved named ours owed reached rest said seen
sent shown spent taken theirs thing things thought told wanted whole written
"""
VAGUE = frozenset(_WORDS.split())
MOST_VAGUE = 0.005
"""Share of all bindings. Flags of commands and keys of stored files are names that users know, and stay."""


def _bindings(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of each variable, argument, field and loop variable."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg


def _is_vague(name: str) -> bool:
    words = name.strip("_")
    return words in VAGUE or (words.rpartition("_")[2] in VAGUE and "_" in words)


def test_a_name_says_what_its_value_is() -> None:
    vague, count = [], 0
    for path in sorted((*ROOT.glob("medexam/**/*.py"), *ROOT.glob("companions/*/**/*.py"))):
        if "tests" in path.parts:
            continue
        for line, name in _bindings(path.read_text(encoding="utf-8")):
            count += 1
            if _is_vague(name):
                vague.append(f"{path.relative_to(ROOT)}:{line} {name}")
    assert count > 10_000
    assert len(vague) <= MOST_VAGUE * count, "\n".join(vague)
