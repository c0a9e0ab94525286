"""YAML as specs are written in it: keys are texts, each stands once, and what is read stays of a size that one writes.

A few lines of YAML can stand for gigabytes, when aliases name aliases, and PyYAML lets a second key replace the first.
"""

from typing import Any

import yaml

from medexam.errors import SpecError
from medexam.inputs import LONGEST_TEXT
from medexam.text import writable

MOST_LEVELS = 50
"""How deep lists and mappings may lie in each other."""
MOST_VALUES = 100_000
"""How many values a text may stand for, aliases written out."""
_TAG = "tag:yaml.org,2002:"


def parse_yaml(text: str, where: str, *, numbered: bool = False) -> Any:
    """Parse the value of a YAML text; raise `SpecError` with the line where it breaks.

    `numbered`: a key may be a whole number too.
    """
    if len(text) > LONGEST_TEXT:
        raise SpecError(f"{where}: is longer than {LONGEST_TEXT:,} characters: shorten it")
    try:
        loader = _Loader(text)
        if (node := loader.get_single_node()) is None:
            return None
        _count(node, {}, 1, {f"{_TAG}str", f"{_TAG}int"} if numbered else {f"{_TAG}str"})
        return writable(loader.construct_document(node))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        problem = " ".join((getattr(error, "problem", None) or str(error)).split())
        raise SpecError(f"{where}{line}: {'' if isinstance(error, _WrongError) else 'not YAML: '}{problem}") from None
    except RecursionError:
        raise SpecError(f"{where}: lists and mappings are nested more than {MOST_LEVELS} levels deep") from None


class _WrongError(yaml.MarkedYAMLError):
    """What is YAML and no spec."""

    def __init__(self, problem: str, node: yaml.Node) -> None:
        super().__init__(problem=problem, problem_mark=node.start_mark)


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, which says where a number or a date is that Python cannot hold."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep)
        except (ValueError, OverflowError) as error:
            raise _WrongError(f"a value cannot be read: {str(error).split(';')[0]}", node) from None
        if isinstance(value, str) and "\0" in value:
            raise _WrongError("a text holds a null character, which paths and prompts cannot have", node)
        return value


def _count(node: yaml.Node, counts: dict[int, int], level: int, keys: set[str]) -> int:
    """Count how many values a node stands for. `counts` holds those before, and 0 of those above; `keys` are the tags
    that a key may have.
    """
    if id(node) in counts:
        if counts[id(node)] == 0:
            raise _WrongError("an alias is inside the value that it names", node)
        return counts[id(node)]
    if level > MOST_LEVELS:
        raise _WrongError(f"lists and mappings are nested more than {MOST_LEVELS} levels deep", node)
    counts[id(node)] = 0
    children = node.value if isinstance(node, yaml.SequenceNode) else []
    if isinstance(node, yaml.MappingNode):
        children, lines = [child for _, child in node.value], dict[str, int]()
        for key in (key for key, _ in node.value if key.tag != f"{_TAG}merge"):
            if not isinstance(key, yaml.ScalarNode) or key.tag not in keys:
                raise _WrongError("a key must be a text; put it in quotes", key)
            if key.value in lines:
                raise _WrongError(f"key {key.value[:80]!r} occurs twice, first in line {lines[key.value]}", key)
            lines[key.value] = key.start_mark.line + 1
    count = 1 + sum(_count(child, counts, level + 1, keys) for child in children)
    if count > MOST_VALUES:
        raise _WrongError(f"this expands to more than {MOST_VALUES:,} values", node)
    counts[id(node)] = count
    return count
