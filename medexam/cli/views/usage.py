"""Wrong usage of a command as one line: what is wrong, and the way out."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from medexam.errors import SpecError


@contextmanager
def usage_in_one_line() -> Iterator[None]:
    """Raises `SpecError` for a usage error of typer's parser, whose own form is a box of several lines."""
    try:
        yield
    except Exception as error:
        # Typer brings a parser of its own since 0.20 and does not export its errors.
        names = {kind.__name__ for kind in type(error).__mro__}
        if "UsageError" not in names or "NoArgsIsHelpError" in names:
            raise
        raise SpecError(describe_usage(error)) from None


def describe_usage(error: Any) -> str:
    """`no such option --engine: write --set model.engine=...; medexam run --help lists the options`."""
    said = " ".join(error.format_message().split()).rstrip(".?")
    said = f"{said[0].lower()}{said[1:]}".replace("option: ", "option ")
    # Typer hands on what pydantic says of a value.
    said = re.sub(r"Input should be (a valid \w+), unable to parse.*", r"it must be \1", said).replace(
        "Value error, ", ""
    )
    option = getattr(error, "option_name", "").lstrip("-").replace("-", "_")
    places = _places(option) if said.startswith("no such option") and option else []
    if places:
        said += f": write --set {places[0]}=..."
    context = getattr(error, "ctx", None)
    return f"{said}; `{context.command_path} --help` lists what there is" if context is not None else said


def _places(option: str) -> list[str]:
    """Where a spec has a key of that name."""
    from medexam.specs import ExperimentSpec
    from medexam.specs.validation import find_places

    return find_places(ExperimentSpec, option)
