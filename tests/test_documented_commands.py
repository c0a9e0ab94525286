"""Every command that the README and the pages print is right usage, and the first steps are run."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from medexam.cli.main import load_command, main

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "examples" / "README.md"]
ENDS = {"|", ">", "&&", ";", "2>&1", "&"}
"""Words of the shell that end a command's own."""


def _lines(text: str) -> Iterator[str]:
    """The commands of a page's blocks of code, each on one line and without its comment."""
    joined = re.sub(r"\\\n\s*", " ", text)
    for line in joined.splitlines():
        if re.match(r"(    |\$ )medexam [a-z-]", line):
            yield re.sub(r"\s+# .*|\s{4,}\(.*", "", line.strip()).removeprefix("$ ")


COMMANDS = sorted({line for page in PAGES for line in _lines(page.read_text(encoding="utf-8"))})


def _words(line: str) -> list[str]:
    words = shlex.split(line)
    end = next((at for at, word in enumerate(words) if word in ENDS), len(words))
    return [word for word in words[1:end] if word != "[…]"]


def test_pages_print_commands() -> None:
    assert len(COMMANDS) > 100


@pytest.mark.parametrize("line", COMMANDS)
def test_a_printed_command_is_right_usage(line) -> None:
    name, *words = _words(line)
    command = load_command(name)
    while inside := getattr(command, "commands", None):
        command, words = inside[words[0]], words[1:]
    command.make_context(name, words)


def _exit_code() -> int | str:
    try:
        main()
    except SystemExit as ended:
        return ended.code or 0
    return 0


@pytest.mark.model
def test_the_first_steps_are_run_from_top_to_bottom(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MEDEXAM_RUNS", raising=False)
    for line in _lines((ROOT / "docs" / "start.md").read_text(encoding="utf-8")):
        monkeypatch.setattr("sys.argv", ["medexam", *_words(line)])
        code = _exit_code()
        printed = capsys.readouterr()
        assert code == 0, f"{line}: {printed.err}"
        assert printed.out or "wrote" in printed.err, line
    assert (tmp_path / "report.html").stat().st_size > 100_000
