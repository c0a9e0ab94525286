"""About what a planned run takes: GPUs and hours, by its own rate where it was measured, else by arithmetic."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from statistics import fmean
from typing import Any

from medexam import MedExamError
from medexam.experiments import AnyCell, prompt_of
from medexam.serve import Layout, Profile, load_profile, profile_names

SAMPLE = 20
"""Questions whose prompts are measured."""
CHARACTERS_A_TOKEN = 3.5
"""Of exam questions in English and Spanish, with the tokenizers of current models."""
REPLY_TOKENS = {"zero_shot": 8, "few_shot": 8, "retrieve_then_answer": 8, "chain_of_thought": 300, "likelihood": 0}
OTHER_REPLY_TOKENS = 100
PASSAGE_TOKENS = 250
"""Of each passage that a prompt shows."""
H100_FLOPS = 989e12 / 2
"""Half of an H100's dense bfloat16, floating point operations a second (docs/scaling.md)."""
H100_REPLY_TOKENS = 5_777 * 16.1
"""Tokens that one H100 writes in a second, times the model's GB: 5,777 of an 8B model (docs/scaling.md)."""


@dataclass(frozen=True)
class Effort:
    """What one run takes."""

    gpus: int | None
    """Of 80 GB, for one server; 0 needs none, None where the model has no profile."""
    hours: float | None
    """For the pending questions, at one server; None if nothing is known."""
    measured: bool
    """Whether the run's own rate so far says it; else it is calculated for H100s."""

    def document(self) -> dict[str, Any]:
        """Return the effort, JSON-ready."""
        return asdict(self)


def estimate(planned: AnyCell) -> Effort:
    """Estimate what asking a cell's pending questions takes."""
    profile = _profile(planned)
    layout = None if profile is None else _layout(profile)
    engine = planned.cell.model.engine if planned.asks_model else None
    gpus = 0 if engine in (None, "embedded", "scripted") else None if layout is None else layout.gpus
    rate = _measured_rate(planned)
    if rate is not None:
        return Effort(gpus, len(planned.pending) / rate / 3600, measured=True)
    if not planned.pending or not (planned.asks_model or planned.retrieval or planned.cell.program.local_reader):
        return Effort(gpus, 0.0, measured=True)
    if profile is None or layout is None:
        return Effort(gpus, None, measured=False)
    seconds = len(planned.pending) * _seconds(planned, profile) / layout.gpus
    return Effort(gpus, seconds / 3600, measured=False)


def _measured_rate(planned: AnyCell) -> float | None:
    """Return the questions a second, as the run's folder has them so far."""
    if not planned.folder.exists():
        return None
    environment: Mapping[str, Any] = planned.folder.read_environment()
    count, seconds = environment.get("asked") or 0, environment.get("asked_s") or 0.0
    return count / seconds if count and seconds else None


def _seconds(planned: AnyCell, profile: Profile) -> float:
    """Return one H100's seconds for a question, if it held the model: reading 2 operations a parameter and token."""
    items = planned.question_set.questions
    chats = [prompt_of(planned, item) for item in items[:: max(1, len(items) // SAMPLE)][:SAMPLE]]
    prompt = fmean(sum(len(message["content"]) for message in chat) for chat in chats) / CHARACTERS_A_TOKEN
    settings = planned.cell.program.retrieval
    prompt += 0 if settings is None else settings.k * PASSAGE_TOKENS
    reply = REPLY_TOKENS.get(planned.cell.program.kind, OTHER_REPLY_TOKENS)
    reading = 2 * (profile.weights_gb / 2 * 1e9) * prompt / H100_FLOPS
    return reading + reply * profile.weights_gb / H100_REPLY_TOKENS


def _profile(planned: AnyCell) -> Profile | None:
    """Return the profile of the cell's model, if one ships."""
    if not planned.asks_model or planned.cell.model.engine != "vllm":
        return None
    return _profile_of(str(planned.cell.model.profile or planned.cell.model.name))


@cache
def _profile_of(label: str) -> Profile | None:
    """Find the profile of this name, or of the model with this name."""
    for name in profile_names():
        try:
            profile = load_profile(name)
        except MedExamError:
            continue
        if label in (name, model_name(name), profile.model):
            return profile
    return None


def _layout(profile: Profile) -> Layout | None:
    """Return the smallest layout on cards of 80 GB; None if it has none."""
    return min(
        (layout for layout in profile.layouts if layout.gpu_gb == 80), key=lambda layout: layout.gpus, default=None
    )
