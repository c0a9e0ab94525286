"""Commands are imported when they are called, and `medexam --help` says of each what its own help says first."""

import subprocess
import sys

import pytest

from medexam.cli import COMMANDS, load_command


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_is_the_first_of_the_commands_own_help(name) -> None:
    command = load_command(name)
    assert command.name == name
    assert " ".join(command.help.split("\n\n")[0].split()) == COMMANDS[name][1]


def test_help_imports_no_command() -> None:
    code = (
        "import sys\nfrom medexam.cli import COMMANDS, app\n"
        "try: app(['--help'])\nexcept SystemExit: pass\n"
        "print({where.split(':')[0] for where, _ in COMMANDS.values()} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"
    assert "optimize" in done.stdout


def test_a_misspelt_command_is_told_the_right_one(medexam) -> None:
    code, _, err = medexam("serv")
    assert code == 2
    assert "serve" in err
