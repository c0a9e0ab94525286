"""Every command that the README and the pages print is right usage, and is run.

A page is read from top to bottom in a folder of its own. What is typed instead of a printed word, and which commands
cannot do their work on a machine without network, cards and cluster, stands in `documented/tables.py`.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from documented.desk import Desk, set_up
from documented.printed import PAGES, Command, commands_of
from documented.tables import BEFORE, MORE, REFUSED, WORDS
from medexam.cli import load_command

READ = {page: commands for page, path in PAGES.items() if (commands := commands_of(path))}
"""Page -> its commands; pages without one are left out."""
LINES = {command.line: command for commands in READ.values() for command in commands}


@pytest.fixture(scope="module")
def desk(
    tmp_path_factory: pytest.TempPathFactory, compiled_umap: None, tiny_llama: Path, empty_store: Path
) -> Iterator[Desk]:
    with set_up(tmp_path_factory.mktemp("desk"), tiny_llama, empty_store) as desk:
        yield desk


def test_pages_print_commands() -> None:
    assert len(LINES) > 150
    assert WORDS.keys() - {"*"} <= READ.keys() >= BEFORE.keys()
    assert REFUSED.keys() <= LINES.keys(), "a command is not printed any more"
    typed = [" ".join(command.words) for command in LINES.values()]
    assert not [begins for begins in MORE if not any(words.startswith(begins) for words in typed)]


@pytest.mark.parametrize("line", sorted(LINES))
def test_a_printed_command_is_right_usage(line: str) -> None:
    name, *words = (word for word in LINES[line].words if word != "[…]")
    command = load_command(name)
    while inside := getattr(command, "commands", None):
        command, words = inside[words[0]], words[1:]
    command.make_context(name, words)


@pytest.mark.model
@pytest.mark.parametrize("page", READ)
def test_the_commands_of_a_page_run_from_top_to_bottom(page: str, desk: Desk, tmp_path: Path) -> None:
    with desk.open(page, tmp_path / "folder") as reader:
        faults = [fault for command in READ[page] for fault in _faults(reader.read(command), command)]
    assert not faults, "\n".join(faults)


def _faults(ended, command: Command) -> Iterator[str]:
    """What is wrong with how a command ended."""
    refusal = REFUSED.get(command.line)
    if "Traceback" in ended.err:
        yield f"{command.line}: ends with a traceback: {ended.err}"
    elif refusal is None and ended.code != 0:
        yield f"{command.line}: ends with {ended.code}: {ended.err}"
    elif refusal is None and not ended.out.strip() + ended.err.strip():
        yield f"{command.line}: prints nothing"
    elif refusal is not None:
        last = ended.err.rstrip("\n").rpartition("\n")[2]
        if ended.code != refusal.code or not last.startswith("medexam: ") or refusal.says not in last:
            yield f"{command.line}: should end with {refusal}, and ends with {ended.code}: {ended.err}"
