"""Models of settings as flags of a command."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import pytest
import typer
from typer.testing import CliRunner

from medexam.cli.options import JsonOption, refuse, settings_as_flags
from medexam.cli.settings import Setting
from medexam.errors import SpecError


def read_sum(text: str) -> int:
    try:
        return sum(map(int, text.split("+")))
    except ValueError:
        raise SpecError(f"{text}: no sum") from None


@dataclass(frozen=True)
class Cake:
    flour: Annotated[int, Setting("Grams.", min=1, max=900)]
    name: Annotated[str | None, typer.Argument(help="What it is called.")] = None
    eggs: Annotated[int, Setting("How many.", metavar="A+B", parse=read_sum)] = 2
    sugar: Annotated[Literal["white", "brown"], Setting("Which one.", panel="Taste")] = "white"
    topping: Annotated[tuple[Path, ...], Setting("May be repeated.", flag="--on-top")] = ()
    vegan: Annotated[bool, Setting("Without eggs.")] = False
    oven: Annotated[bool, Setting("Bake it.")] = True


@dataclass(frozen=True)
class Plate:
    size: Annotated[int, Setting("Centimetres.")] = 24

    def __post_init__(self) -> None:
        if self.size < 10:
            raise SpecError("too small")


@pytest.fixture
def bake():
    """Calls a command with words; what it was called with, or what it printed."""
    called = []

    @settings_as_flags
    def command(context: typer.Context, cake: Cake, plate: Plate, as_json: JsonOption = False) -> None:
        """Bake."""
        refuse(context, {"vegan"} if plate.size > 30 else (), "not on this plate")
        called.append((cake, plate, as_json))

    app = typer.Typer()
    app.command()(command)

    def call(*words: str):
        called.clear()
        done = CliRunner().invoke(app, words, env={"COLUMNS": "160", "TERMINAL_WIDTH": "160"})
        if isinstance(done.exception, SpecError):
            return str(done.exception)
        return called[0] if called else done.output

    return call


def test_a_command_is_called_with_its_models(bake) -> None:
    assert bake("--flour", "200") == (Cake(200), Plate(), False)
    words = "mine --flour 200 --eggs 1+2 --sugar brown --on-top a --on-top b --vegan --no-oven --size 30 --json"
    cake = Cake(200, "mine", 3, "brown", (Path("a"), Path("b")), vegan=True, oven=False)
    assert bake(*words.split()) == (cake, Plate(30), True)


def test_the_help_is_that_of_the_settings(bake) -> None:
    lines = [" ".join(line.strip("│* ").split()) for line in bake("--help").splitlines()]
    assert any(line.startswith("--eggs A+B How many. [default: 2]") for line in lines)
    assert any(line.startswith("--vegan ") and "no-vegan" not in line for line in lines)
    assert any("--no-oven" in line for line in lines)
    assert any("Taste" in line for line in lines)
    assert any(line.startswith("--flour") and "1<=x<=900" in line and "[required]" in line for line in lines)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "Missing option '--flour'"),
        ("--flour 0", "Invalid value for '--flour'"),
        ("--flour 1 --sugar red", "Invalid value for '--sugar'"),
        ("--flour 1 --eggs few", "few: no sum"),
        ("--flour 1 --size 9", "too small"),
        ("--flour 1 --size 31 --vegan", "--vegan: not on this plate"),
    ],
)
def test_what_a_setting_does_not_take_is_refused(bake, words, said) -> None:
    assert said in bake(*words.split())
