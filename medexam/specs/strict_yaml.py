"""YAML as specs are written in it: keys are texts, and each stands once, where PyYAML lets a second one replace it."""

from typing import Any

import yaml

from medexam.errors import SpecError
from medexam.text import writable


def parse_yaml(text: str, where: str, *, numbered: bool = False) -> Any:
    """Parse the value of a YAML text; raise `SpecError` with the line where it breaks.

    `numbered`: a key may be a whole number too.
    """
    try:
        loader = yaml.SafeLoader(text)
        if (node := loader.get_single_node()) is None:
            return None
        _check(node, where, ("str", "int") if numbered else ("str",), set())
        return writable(loader.construct_document(node))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        problem = " ".join((getattr(error, "problem", None) or str(error)).split())
        raise SpecError(f"{where}{line}: not YAML: {problem}") from None
    except (ValueError, OverflowError, RecursionError) as error:
        raise SpecError(f"{where}: a value cannot be read: {str(error).split(';')[0]}") from None


def _check(node: yaml.Node, where: str, keys: tuple[str, ...], checked: set[int]) -> None:
    """Raise `SpecError` for a key that is no text or stands twice, and for a text that no path or prompt can hold."""
    line = f"{where}, line {node.start_mark.line + 1}"
    if id(node) in checked:
        return
    checked.add(id(node))
    if isinstance(node, yaml.ScalarNode) and "\0" in node.value:
        raise SpecError(f"{line}: a text holds a null character")
    lines = dict[str, int]()
    for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
        if (kind := key.tag.rpartition(":")[2]) == "merge":
            continue
        line = f"{where}, line {key.start_mark.line + 1}"
        if kind not in keys:
            raise SpecError(f"{line}: a key must be a text; put it in quotes")
        if key.value in lines:
            raise SpecError(f"{line}: key {key.value[:80]!r} occurs twice, first in line {lines[key.value]}")
        lines[key.value] = key.start_mark.line + 1
    for child in [] if isinstance(node, yaml.ScalarNode) else node.value:
        _check(child[1] if isinstance(child, tuple) else child, where, keys, checked)
