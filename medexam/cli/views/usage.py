"""Wrong usage of a command as one line: what is wrong, and the way out."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from medexam.errors import SpecError

_MEANT = {
    "dry_run": "`medexam plan` shows what would run",
    **dict.fromkeys(
        ("max_model_len", "tensor_parallel_size", "served_model_name", "max_num_seqs", "gpu_memory_utilization"),
        "vLLM's own flags stand after `--`, as in `medexam serve MODEL -- --max-model-len 8192`",
    ),
}
"""Options of other tools -> what does the same here."""


@contextmanager
def usage_in_one_line() -> Iterator[None]:
    """Raise `SpecError` for a usage error of typer's parser, whose own form is a box of several lines."""
    try:
        yield
    except Exception as error:
        # Typer brings a parser of its own since 0.20 and does not export its errors.
        names = {kind.__name__ for kind in type(error).__mro__}
        if "UsageError" not in names or "NoArgsIsHelpError" in names:
            raise
        raise SpecError(describe_usage(error)) from None


def describe_usage(error: Any) -> str:
    """Describe as `no such option --engine: write --set model.engine=...; medexam run --help lists the options`."""
    message = " ".join(error.format_message().split()).rstrip(".?")
    message = f"{message[0].lower()}{message[1:]}".replace("option: ", "option ")
    # Typer hands on what pydantic says of a value.
    message = re.sub(r"Input should be (a valid \w+), unable to parse.*", r"it must be \1", message).replace(
        "Value error, ", ""
    )
    if (command := re.fullmatch(r"no such command '(.+)'", message)) and _is_spec(command[1]):
        return f"{message}: write `medexam run {command[1]}`"
    option = getattr(error, "option_name", "").lstrip("-").replace("-", "_")
    if message.startswith("no such option") and option:
        from medexam.specs.experiment import ExperimentSpec
        from medexam.specs.validation import find_places

        if places := find_places(ExperimentSpec, option):
            message += f": write --set {places[0]}=..."
        elif option in _MEANT:
            message += f": {_MEANT[option]}"
    # The bounds of a number, as pydantic says them.
    message = re.sub(r"'?Input should be greater than or equal to ([\d.]+)'?", r"give at least \1", message)
    message = re.sub(r"'?Input should be less than or equal to ([\d.]+)'?", r"give at most \1", message)
    if message.startswith("invalid value for"):
        return message
    context = getattr(error, "ctx", None)
    return f"{message}; `{context.command_path} --help` lists the choices" if context is not None else message


def _is_spec(word: str) -> bool:
    """Return whether `medexam run` takes the word: a shipped experiment or a YAML file."""
    from medexam.specs.loading import library_names

    return word in library_names() or (Path(word).suffix in (".yaml", ".yml") and Path(word).is_file())
