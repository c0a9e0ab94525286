"""Every command that the README and the pages print is right usage; those of a first reader run from top to bottom."""

import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from provider_wire import serve_provider
from provider_wires import OpenAI

from command_line import _untracked, medexam
from medexam.cli import walk_commands
from medexam.serve import smollm2_folder

__all__ = ["_untracked", "medexam"]
ROOT = Path(__file__).parents[1]
COMPANIONS = ROOT / "companions" / "medexam_companions"
PAGES = {
    path.relative_to(ROOT).as_posix(): path
    for path in (
        ROOT / "README.md",
        *sorted((ROOT / "docs").glob("*.md")),
        ROOT / "examples" / "README.md",
        *sorted(COMPANIONS.glob("*/README.md")),
    )
}
"""Name from the root -> file."""
ENDS = {"|", ">", "2>&1", "&", ";"}
"""Words of the shell that end a command's own."""
COMMAND = re.compile(r"(?:[A-Z_]+=\S+ |srun [^|]*?(?=medexam))*medexam [a-z-]")
"""A line that begins in this way is a command, perhaps behind variables or `srun`."""
FIRST_PAGES = ("README.md", "docs/tutorial.md", "docs/your-own-questions.md")
MORE = {
    "run strategies.yaml": "--limit 1 --set model.max_tokens=8",
    "run headqa_sample --model": "--limit 2",
    "run ways.yaml": "--limit 2",
    "run better.yaml": "--limit 2",
}
"""The beginning of a command -> what is added, so that it takes a second."""
SERVES = {("ui",)}
"""Words of commands that serve until Ctrl-C, and are not run."""


@dataclass(frozen=True)
class Command:
    """One call of medexam."""

    line: str
    """As it is printed, on one line and without its comment."""
    words: tuple[str, ...]
    """Without `medexam` itself."""

    @classmethod
    def read(cls, line: str) -> "Command":
        """The command of a line of the shell."""
        words = shlex.split(line)
        own = words[words.index("medexam") + 1 :]
        end = next((place for place, word in enumerate(own) if word in ENDS), len(own))
        return cls(line, tuple(own[:end]))


def commands_of(page: Path) -> list[Command]:
    """The commands of a page, from top to bottom."""
    lines = _lines(page.read_text(encoding="utf-8"))
    return [Command.read(part.strip()) for line in lines for part in line.split(" && ")]


def _lines(text: str) -> Iterator[str]:
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        indented = re.match(r"    |\$ ", line)
        if indented and COMMAND.match(line[indented.end() :]):
            yield re.sub(r"\s+# .*|\s{4,}\(.*", "", line[indented.end() :]).strip()


def specs_of(page: Path) -> dict[str, str]:
    """File -> the YAML that the page shows for it, named by a first line `# FILE`, or by its `name`."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    blocks += map(textwrap.dedent, re.findall(r"(?:^ {4}.*\n)+", text, flags=re.MULTILINE))
    found: dict[str, str] = {}
    for block in blocks:
        first = block.partition("\n")[0]
        file = f"{first.removeprefix('name: ').strip()}.yaml" if first.startswith("name: ") else first[2:]
        found.setdefault(file, block)
    return found


READ = {page: commands for page, path in PAGES.items() if (commands := commands_of(path))}
"""Page -> its commands; pages without one are left out."""
ALL = dict(walk_commands())
"""Words of a command -> the command."""


def _name(command: Command) -> str:
    """The words that name it; empty if no command has this name and the core alone is here."""
    names = [" ".join(command.words[:length]) for length in (1, 2)]
    return next((name for name in names if name in ALL), names[0] if COMPANIONS.is_dir() else "")


LINES = {command.line: command for commands in READ.values() for command in commands if _name(command)}
"""Printed line -> the command, of those that are installed."""


def test_pages_print_commands() -> None:
    assert len(LINES) > (150 if COMPANIONS.is_dir() else 90)
    assert READ.keys() >= {*FIRST_PAGES}


@pytest.mark.parametrize("line", sorted(LINES))
def test_a_printed_command_is_right_usage(line: str) -> None:
    name, words = _name(LINES[line]), [word for word in LINES[line].words if word != "[…]"]
    ALL[name].make_context(name, words[len(name.split()) :])


@pytest.fixture
def desk(tmp_path, tiny_llama, monkeypatch) -> Path:
    """A folder with questions of one's own, without MLflow; a drawn model stands for SmolLM2."""
    monkeypatch.setitem(sys.modules, "mlflow", None)
    models = tmp_path / "cache" / "models"
    models.mkdir(parents=True)
    (models / smollm2_folder().name).symlink_to(tiny_llama)
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("MEDEXAM_DATA", raising=False)
    shutil.copy(ROOT / "examples" / "my_questions.csv", tmp_path / "my.csv")
    return tmp_path


@pytest.mark.parametrize("page", FIRST_PAGES)
def test_the_commands_of_a_first_reader_run_from_top_to_bottom(page: str, medexam, desk: Path) -> None:
    commands = READ[page]
    named = {word for command in commands for word in command.words if word.endswith(".yaml")}
    made = {"my.yaml"} if any(command.words[0] == "init" and command.words[1:] for command in commands) else set()
    for file, text in specs_of(PAGES[page]).items():
        if file in named - made:
            (desk / file).write_text(text, encoding="utf-8")
    with serve_provider(OpenAI()):
        for command in (command for command in commands if command.words not in SERVES and _name(command)):
            more = next((more for begins, more in MORE.items() if " ".join(command.words).startswith(begins)), "")
            code, out, err = medexam(*_typed(command, desk), *more.split())
            assert code == 0, f"{command.line}: {err}"
            assert out.strip() + err.strip(), f"{command.line} prints nothing"


def _typed(command: Command, folder: Path) -> Iterator[str]:
    """The words of a command as the shell gives them, with the optimization's folder for its place on the page."""
    for word in command.words:
        word = word.replace("FOLDER", next((str(path) for path in folder.glob("runs/better-labeled-*")), "FOLDER"))
        yield from (str(path) for path in sorted(folder.glob(word))) if "*" in word else (word,)
