"""The command that asks the servers that were examined: with the engine that gets most out of them.

Engine `vllm` where choices, log-probabilities or whole batches of prompts go by it; else engine `litellm`, which knows
OpenAI's own fields alone. This module knows what was found out and writes a line; it asks nothing.
"""

import json
import shlex
from collections.abc import Mapping

from medexam.serve.diagnostics.api_check import honours_schema
from medexam.serve.diagnostics.diagnosis import Diagnosis, DiagnosisReport
from medexam.specs.catalogue import SAMPLE

_SPEC = SAMPLE.name
"""The experiment that ships with its questions."""


def next_command(report: DiagnosisReport, connection: Mapping[str, str]) -> str | None:
    """The shell line, None if no server can be used; `connection` holds the keys of `model` that reach the servers."""
    usable = [one for one in report.diagnoses if one.seen is not None]
    if not usable:
        return None
    first, seen = usable[0], usable[0].seen
    assert seen is not None  # noqa: S101 - for the type checker
    engine, program = _choose(first)
    same = [one.endpoint for one in usable if one.seen is not None and one.seen.model == seen.model]
    model = {"engine": engine, "endpoints": same if engine == "vllm" else same[:1], **connection}
    if engine == "litellm":
        model["name"] = f"openai/{seen.model}"
    elif not seen.models or len(seen.models) > 1:
        model["name"] = seen.model
    settings = [f"model={json.dumps(model)}", *program]
    return " ".join(["medexam run", _SPEC, *(f"--set {shlex.quote(one)}" for one in settings)])


def _choose(one: Diagnosis) -> tuple[str, list[str]]:
    """The engine, and the program's settings that differ from the experiment's."""
    seen = one.seen
    assert seen is not None  # noqa: S101 - for the type checker
    if not seen.chat:
        return "vllm", ["program.kind=likelihood", "program.chat_template=false"]
    if seen.guided_by:
        return "vllm", ["program.answer_format=guided"]
    if honours_schema(one.api):
        return "litellm", ["program.answer_format=guided"]
    return ("vllm" if seen.is_vllm else "litellm"), ["program.answer_format=free"]
