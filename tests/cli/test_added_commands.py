"""Commands that installed packages add, by entry points of the group `medexam.commands`."""

import pytest

from table_cases import read_table

CODE = '''
"""What this module holds."""
import typer

app = typer.Typer()

@app.command()
def one() -> None:
    """Say one."""
    print("one")

@app.command()
def two() -> None:
    """Say two."""
    print("two")

def grade(points: int = 3) -> None:
    """Grade a run.

    More of it.
    """
    print(f"{points} points")
'''
BROKEN = '"""A module that cannot be imported."""\nimport no_such_module\ndef grade(): ...\n'
POINTS = {
    "grade": "own_commands:grade",
    "numbers": "own_commands:app",
    "data grade": "own_commands:grade",
    "data list": "own_commands:grade",
    "run": "own_commands:grade",
    "broken": "broken_commands:grade",
    "lost": "lost_commands:grade",
    "version": "own_commands:__name__",
}


@pytest.fixture(autouse=True)
def _installed(install) -> None:
    install("medexam.commands", POINTS, {"own_commands": CODE, "broken_commands": BROKEN})


def test_the_help_lists_them_with_the_first_line_of_their_own(medexam) -> None:
    code, out, _ = medexam("--help")
    assert code == 0
    lines = {name: line for name, _, line in (line.strip("│ ").partition(" ") for line in out.splitlines())}
    assert lines["grade"].strip(" │") == "Grade a run."
    assert lines["numbers"].strip(" │") == "What this module holds."
    assert "lost" not in lines
    assert "experiment" in lines["run"], "a name that ships is not a package's to replace"
    assert medexam("data", "--help")[1].count("Grade a run.") == 1
    assert "headqa_sample" in medexam("data", "list")[1], "a name of a group's own is not a package's either"


@pytest.mark.parametrize(*read_table("called_commands"))
def test_they_are_called_by_their_names(medexam, words, printed) -> None:
    assert medexam(*words) == (0, printed, "")


@pytest.mark.parametrize(
    ("name", "words"), [("broken", "no_such_module"), ("lost", "lost_commands"), ("version", "neither a function")]
)
def test_one_that_cannot_be_loaded_is_one_line(medexam, name, words) -> None:
    code, out, err = medexam(name)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) == 1
