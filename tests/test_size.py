"""How much there is to read: no wing grows beyond its tokens in `.ci/size.toml`, which only fall."""

import ast
import io
import tokenize
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMITS = ROOT / ".ci" / "size.toml"
BLANK = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}


def count_tokens(text: str) -> int:
    """Tokens of Python code without comments, imports and docstrings, those below fields included."""
    rows: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            rows |= set(range(node.lineno, (node.end_lineno or 0) + 1))
        for part in body if isinstance(body := getattr(node, "body", None), list) else ():
            if (
                isinstance(part, ast.Expr)
                and isinstance(part.value, ast.Constant)
                and isinstance(part.value.value, str)
            ):
                rows |= set(range(part.lineno, (part.end_lineno or 0) + 1))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type not in BLANK and token.start[0] not in rows for token in tokens)


def sizes() -> Counter[str]:
    """Wing, or folder of tests, -> its tokens; `medexam` alone are the modules beside the wings."""
    counts: Counter[str] = Counter()
    for package in ("medexam", "tests"):
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).parts[:-1]
            counts["/".join(parts[:2])] += count_tokens(path.read_text(encoding="utf-8"))
    return counts


def test_nothing_grows_beyond_its_limit() -> None:
    limits = tomllib.loads(LIMITS.read_text(encoding="utf-8"))["tokens"]
    above = {
        name: f"{size} tokens, {limits.get(name, 0)} allowed"
        for name, size in sizes().items()
        if size > limits.get(name, 0)
    }
    assert not above, f"{LIMITS.name}: subtract as much elsewhere in the folder, or say in the commit what was replaced"
