"""How much there is to read: no wing has more tokens than `.ci/size.toml` says, and a figure falls with its wing."""

import tokenize
import tomllib
from collections import Counter
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMITS = tomllib.loads((ROOT / ".ci" / "size.toml").read_text(encoding="utf-8"))["tokens"]
BLANK = {tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER}
SLACK = 100
"""Tokens, beside one in a hundred, by which a wing may be smaller than its figure."""


def count_tokens(path: Path) -> int:
    """Tokens of Python code without comments, imports and docstrings, those below fields included."""
    count = 0
    with path.open("rb") as lines:
        tokens = (token for token in tokenize.tokenize(lines.readline) if token.type not in BLANK)
        for is_end, statement in groupby(tokens, lambda token: token.type == tokenize.NEWLINE):
            words = list(statement)
            is_text = all(token.type == tokenize.STRING for token in words)
            if not (is_end or is_text or words[0].string in ("import", "from")):
                count += len(words)
    return count


def name_folder(path: Path) -> str:
    """Name the wing, the companion or the folder of tests that a module is counted with."""
    top, *folders = path.relative_to(ROOT).parts[:-1]
    if top != "companions":
        return "/".join([top, *folders[:1]])
    return "companions/tests" if "tests" in folders else "/".join([top, *folders[1:2]])


def test_no_wing_is_above_its_figure_and_each_figure_falls_with_its_wing() -> None:
    sizes: Counter[str] = Counter()
    """Wing, companion or folder of tests -> its tokens; `medexam` alone are the modules beside the wings."""
    for path in (path for top in ("medexam", "companions", "tests") for path in ROOT.glob(f"{top}/**/*.py")):
        sizes[name_folder(path)] += count_tokens(path)
    above = [
        f"{name} has {size} of {LIMITS.get(name, 0)}" for name, size in sizes.items() if size > LIMITS.get(name, 0)
    ]
    assert not above, (
        f"size.toml: subtract as much elsewhere in the folder, or say in the commit what was replaced: {above}"
    )
    here = {name: limit for name, limit in LIMITS.items() if (ROOT / name.split("/")[0]).is_dir()}
    fallen = [f'"{name}" = {sizes[name]}' for name, limit in here.items() if sizes[name] < 0.99 * limit - SLACK]
    assert not fallen, f"size.toml: write what is smaller now: {'; '.join(fallen)}"
