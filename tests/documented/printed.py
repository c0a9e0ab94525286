"""What the pages print: commands, in the order in which a reader types them, and the files that they show.

It runs nothing.
"""

import re
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = {
    path.relative_to(ROOT).as_posix(): path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "examples" / "README.md")
}
"""Name from the root -> file."""
_ENDS = {"|", ">", "2>&1", "&", ";"}
"""Words of the shell that end a command's own."""
_COMMAND = re.compile(r"(?:[A-Z_]+=\S+ |srun [^|]*?(?=medexam))*medexam [a-z-]")
"""A line that begins in this way is a command, perhaps behind variables or `srun`."""


@dataclass(frozen=True)
class Command:
    """One call of medexam."""

    line: str
    """As it is printed, on one line and without its comment."""
    words: tuple[str, ...]
    """Without `medexam` itself."""
    variables: tuple[tuple[str, str], ...] = ()
    """What is set before it on the line."""
    output: str | None = None
    """The file that its output is written to; None: the terminal."""

    @classmethod
    def read(cls, line: str) -> "Command":
        """The command of a line of the shell."""
        words = shlex.split(line)
        at = words.index("medexam")
        variables = tuple((word.partition("=")[0], word.partition("=")[2]) for word in words[:at] if "=" in word)
        own = words[at + 1 :]
        end = next((place for place, word in enumerate(own) if word in _ENDS), len(own))
        output = own[end + 1] if own[end : end + 1] == [">"] else None
        return cls(line, tuple(own[:end]), variables, output)


def commands_of(page: Path) -> list[Command]:
    """The commands of a page, from top to bottom."""
    lines = _lines(page.read_text(encoding="utf-8"))
    return [Command.read(part.strip()) for line in lines for part in line.split(" && ")]


def specs_of(page: Path, named: set[str]) -> dict[str, str]:
    """File -> the YAML that the page shows for it, of the `named` files: by a first line `# FILE`, or by its `name`."""
    found: dict[str, str] = {}
    for block in _blocks(page.read_text(encoding="utf-8")):
        first = block.partition("\n")[0]
        file = f"{first.removeprefix('name: ').strip()}.yaml" if first.startswith("name: ") else first[2:]
        if file in named:
            found.setdefault(file, block)
    return found


def _lines(text: str) -> Iterator[str]:
    joined = re.sub(r"\\\n\s*", " ", text)
    for line in joined.splitlines():
        indented = re.match(r"    |\$ ", line)
        if indented and _COMMAND.match(line[indented.end() :]):
            yield re.sub(r"\s+# .*|\s{4,}\(.*", "", line[indented.end() :]).strip()


def _blocks(text: str) -> Iterator[str]:
    """The blocks of code of a page, indented or fenced; a blank line ends an indented one."""
    yield from re.findall(r"^```yaml\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    yield from map(textwrap.dedent, re.findall(r"(?:^ {4}.*\n)+", text, flags=re.MULTILINE))
