"""The page of all commands, from the command line itself: helps, arguments, options and examples."""

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from medexam.cli import walk_commands

INTRODUCTION = """\
# Commands

What `medexam COMMAND --help` says of every command. Results go to standard output, everything else to standard error.

| exit code | what |
|---|---|
| 0 | complete |
| 1 | a gate that did not pass, or an answer "no" |
| 2 | a wrong spec or wrong usage, or nothing usable came out |
| 3 | incomplete: the same command asks the rest |

`medexam --install-completion` has the shell complete commands, options, names of specs and ids of runs.
"""


def command_page() -> str:
    """Return the page as Markdown, in the order of `medexam --help`."""
    sections = [INTRODUCTION]
    for path, command in walk_commands():
        sections += _section(path, command)
    return "\n\n".join(sections) + "\n"


def _section(path: str, command: Any) -> Iterator[str]:
    yield f"## medexam {path}"
    yield "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))
    yield "```bash\n" + "\n".join(line.strip() for line in command.epilog.splitlines()[1:]) + "\n```"
    rows = [_row(parameter) for parameter in command.params if not getattr(parameter, "hidden", False)]
    if rows:
        yield "\n".join(["| | value | what |", "|---|---|---|", *rows])


def _row(parameter: Any) -> str:
    said = " ".join(str(getattr(parameter, "help", None) or "").split())
    if parameter.param_type_name == "argument":
        name, value = f"`{parameter.metavar or parameter.name.upper()}`", "required" if parameter.required else ""
    else:
        name = ", ".join(f"`{option}`" for option in (*parameter.opts, *parameter.secondary_opts))
        value = "" if getattr(parameter, "is_flag", False) else _value(parameter)
    cells = (name, value, said)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _value(parameter: Any) -> str:
    annotation = parameter.type_descriptor.annotation
    if get_origin(annotation) is Literal:
        shown = ", ".join(f"`{choice}`" for choice in get_args(annotation))
    else:
        shown = parameter.metavar or getattr(annotation, "__name__", "text").lower().replace("str", "text")
    default = parameter.default
    told = isinstance(default, str | int | float) and not isinstance(default, bool) and default != ""
    return f"{shown}; `{default}` by default" if told else str(shown)
