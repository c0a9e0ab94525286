"""What a reader is shown before typing: one line and an example of every command, and completed words."""

import sys

import pytest

from medexam.cli import load_command, run_command, walk_commands
from medexam.plugins import added_names
from table_cases import read_table

ALL = dict(walk_commands())
"""Words of a command -> the command."""
CORE = [name for name in ALL if not {name, name.split()[0]} & added_names("medexam.commands").keys()]
COMMANDS = {name.split()[0] for name in CORE}


def test_the_help_lists_every_command_with_the_first_line_of_its_own(medexam, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    listed = " ".join(medexam("--help")[1].replace("│", " ").split())
    for name in COMMANDS:
        command = load_command(name)
        assert f"{name} {' '.join(command.help.partition(chr(10) * 2)[0].split())}" in listed


@pytest.mark.parametrize("name", ALL)
def test_every_help_ends_with_examples_that_are_right_usage(name) -> None:
    title, *lines = ALL[name].epilog.splitlines()
    assert title == "Examples:"
    assert lines
    for line in lines:
        words = line.partition(" > ")[0].split()
        assert words[: 1 + len(name.split())] == ["medexam", *name.split()]
        ALL[name].make_context(name, words[1 + len(name.split()) :])


def test_a_core_user_sees_few_commands_and_options() -> None:
    """Eighteen commands, and two hundred options over them."""
    options = [
        parameter.name for name in CORE for parameter in ALL[name].params if parameter.param_type_name == "option"
    ]
    assert len(COMMANDS) <= 18
    assert len(options) <= 200


def test_help_shows_groups_of_commands_and_examples(medexam) -> None:
    code, out, _ = medexam("--help")
    places = [out.index(f" {title} ") for title in ("Ask", "Look", "Compare", "Your own", "Serve")]
    assert (code, min(places) > 0, "--install-completion" in out) == (0, True, True)
    _, out, _ = medexam("run", "-h")
    lines = [line.strip() for line in out.splitlines()]
    assert lines[lines.index("Examples:") + 1] == "medexam run quickstart"


@pytest.fixture
def complete(monkeypatch, tmp_path, capsys):
    """The words that bash is given for the last word of a command."""

    def ask(line: str) -> list[str]:
        monkeypatch.setattr(sys, "argv", ["medexam"])
        monkeypatch.setenv("_MEDEXAM_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        with pytest.raises(SystemExit):
            run_command()
        return capsys.readouterr().out.split()

    monkeypatch.chdir(tmp_path)
    return ask


@pytest.mark.parametrize(*read_table("completed_words"))
def test_words_are_completed(complete, line, words) -> None:
    assert complete(line) == words
