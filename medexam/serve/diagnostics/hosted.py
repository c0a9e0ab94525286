"""What is to be known of a hosted model before a run is given to it: litellm's tables, and what the model itself shows.

Without a key the tables alone are read, which costs nothing and asks nobody. This module asks and notes.
"""

import asyncio
import re
import shlex
from pathlib import Path

from medexam.errors import AnswerFormatError, CallError, EngineError
from medexam.frozen_model import FrozenModel
from medexam.serve.discovery.capabilities import HostedCapabilities
from medexam.serve.engines.litellm import LiteLLMEngine
from medexam.serve.engines.litellm_calls import get_litellm
from medexam.serve.engines.litellm_probe import HostedProbe, describe_refusal
from medexam.serve.network.event_loop import background_loop
from medexam.specs.catalogue import SAMPLE
from medexam.specs.model import ModelSpec
from medexam.specs.validation import validate

_PROVIDER = re.compile(r"([a-z][a-z0-9_]*)/.+")


class HostedDiagnosis(FrozenModel):
    """What was found out about one hosted model."""

    capabilities: HostedCapabilities
    fault: str | None = None
    """Why it cannot be asked; None if it can."""

    @property
    def command(self) -> str | None:
        """The shell line that asks it a few questions; None if it cannot be asked."""
        if self.fault is not None:
            return None
        record = self.capabilities
        settings = [] if record.fixed_temperature is None else [f"model.temperature={record.fixed_temperature:g}"]
        settings += ["program.answer_format=guided"] if record.guided_by else []
        words = ["medexam run", SAMPLE.name, "--limit 5", "--model", shlex.quote(record.model)]
        return " ".join([*words, *(f"--set {setting}" for setting in settings)])


def is_hosted(name: str) -> bool:
    """Return whether a text names a hosted model, as PROVIDER/MODEL, and not a server's address."""
    match = _PROVIDER.fullmatch(name)
    return match is not None and match[1] in {
        str(getattr(provider, "value", provider)) for provider in get_litellm().provider_list
    }


async def examine(name: str, *, api_key_env: str | None = None, api_key_file: Path | None = None) -> HostedDiagnosis:
    """Find out what a hosted model takes; raises `SpecError` for a key that is none."""
    keys = {"api_key_env": api_key_env, "api_key_file": api_key_file}
    spec = validate(ModelSpec, {"engine": "litellm", "name": name, **keys})
    await asyncio.to_thread(get_litellm)
    diagnosis = await background_loop().run_async(_ask(spec))
    temperature = diagnosis.capabilities.fixed_temperature
    if temperature is None:
        return diagnosis
    return await background_loop().run_async(_ask(spec.model_copy(update={"temperature": temperature})))


async def _ask(spec: ModelSpec) -> HostedDiagnosis:
    engine = LiteLLMEngine(spec)
    probe, fault = HostedProbe(engine, spec), None
    try:
        probe.check_key()
        await probe.check_settings()
        await _check_ways(probe, engine)
    except EngineError as error:
        fault = str(error)
    except (CallError, ImportError) as error:
        fault = describe_refusal(engine.record, error)
    finally:
        await engine.close()
    return HostedDiagnosis(capabilities=engine.record, fault=fault)


async def _check_ways(probe: HostedProbe, engine: LiteLLMEngine) -> None:
    """Find out whether choices and pictures are taken; raises `EngineError` if the model falls silent."""
    try:
        await probe.check_guided()
    except AnswerFormatError:
        # The record holds no form then, which says it.
        engine.note(guided_by=None)
    try:
        await probe.check_sight()
    except EngineError:
        if engine.record.sees is not False:
            raise
