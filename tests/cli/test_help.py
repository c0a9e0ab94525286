"""What a reader is shown before typing: an example in every help, and completed words."""

import sys

import pytest

from medexam.cli import COMMANDS, load_command, run_command
from medexam.cli.help.examples import EXAMPLES


def _commands(command: object, path: str):
    inside = getattr(command, "commands", None)
    if inside is None:
        yield path, command
    for name, each in (inside or {}).items():
        yield from _commands(each, f"{path} {name}")


ALL = dict(pair for name in COMMANDS for pair in _commands(load_command(name), name))


def test_every_command_has_an_example() -> None:
    assert set(ALL) == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_are_right_usage(name) -> None:
    for line in EXAMPLES[name]:
        words = line.partition(" > ")[0].split()
        assert words[0] == "medexam"
        assert words[1 : 1 + len(name.split())] == name.split()
        ALL[name].make_context(name, words[1 + len(name.split()) :])


def test_help_shows_the_example_on_lines_of_their_own(medexam) -> None:
    code, out, _ = medexam("run", "-h")
    assert code == 0
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
    monkeypatch.delenv("MEDEXAM_RUNS", raising=False)
    (tmp_path / "quite_mine.yaml").write_text("name: mine")
    for name in ("kept-longest-en-0a0ed82f57dd", "kept-random-en-0e99fd1a64a1"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "spec.json").write_text("{}")
    return ask


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("medexam dat", ["data"]),
        ("medexam data tra", ["translate"]),
        ("medexam run --li", ["--limit"]),
        ("medexam run qui", ["quickstart", "quite_mine.yaml"]),
        ("medexam plan headqa_sam", ["headqa_sample", "headqa_sample_open"]),
        ("medexam report kept-l", ["kept-longest-en-0a0ed82f57dd"]),
        ("medexam show 0", ["0a0ed82f57dd", "0e99fd1a64a1"]),
        ("medexam rm --runs-dir nowhere 0", []),
        ("medexam compare ru", ["runs"]),
    ],
)
def test_words_are_completed(complete, line, words) -> None:
    assert complete(line) == words
