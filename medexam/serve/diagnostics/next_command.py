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
    """Build the shell line, None if no server can be used; `connection` holds the keys of `model` that reach the
    servers.
    """
    usable = [diagnosis for diagnosis in report.diagnoses if diagnosis.seen is not None]
    if not usable:
        return None
    target, capabilities = usable[0], usable[0].seen
    assert capabilities is not None  # noqa: S101 - for the type checker
    engine, program = _choose(target)
    endpoints = [
        diagnosis.endpoint
        for diagnosis in usable
        if diagnosis.seen is not None and diagnosis.seen.model == capabilities.model
    ]
    model = {"engine": engine, "endpoints": endpoints if engine == "vllm" else endpoints[:1], **connection}
    if engine == "litellm":
        model["name"] = f"openai/{capabilities.model}"
    elif not capabilities.models or len(capabilities.models) > 1:
        model["name"] = capabilities.model
    settings = [f"model={json.dumps(model)}", *program]
    return " ".join(["medexam run", _SPEC, *(f"--set {shlex.quote(setting)}" for setting in settings)])


def _choose(diagnosis: Diagnosis) -> tuple[str, list[str]]:
    """Choose the engine, and the program's settings that differ from the experiment's."""
    capabilities = diagnosis.seen
    assert capabilities is not None  # noqa: S101 - for the type checker
    if not capabilities.chat:
        return "vllm", ["program.kind=likelihood", "program.chat_template=false"]
    if capabilities.guided_by:
        return "vllm", ["program.answer_format=guided"]
    if honours_schema(diagnosis.api):
        return "litellm", ["program.answer_format=guided"]
    return ("vllm" if capabilities.is_vllm else "litellm"), ["program.answer_format=free"]
