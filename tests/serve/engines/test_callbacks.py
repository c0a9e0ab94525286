"""Callbacks of litellm's hear of every question; and a call that goes round litellm is the one that litellm makes."""

from collections.abc import Callable
from typing import Any

import litellm
import pytest
from engine_calls import spec_of
from litellm.integrations.custom_logger import CustomLogger
from wire_server import Wire, serving

import medexam
from waiting import until

QUESTIONS = 6
GUIDED = {"kind": "zero_shot", "answer_format": "guided"}


class Listener(CustomLogger):
    """Keeps the texts of what was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time) -> None:
        self.texts.append(_text(kwargs.get("messages") or kwargs.get("input")))


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Callable[[CustomLogger], None]:
    """Register a callback of litellm's until the test ends."""
    lists = ("callbacks", "success_callback", "failure_callback", "_async_success_callback", "_async_failure_callback")
    for name in (*lists, "input_callback"):
        monkeypatch.setattr(litellm, name, [])
    return lambda callback: monkeypatch.setattr(litellm, "callbacks", [callback])


def _text(part: Any) -> str:
    """Write messages, prompts, and prompts of tokens, which the server makes of characters, as one text."""
    match part:
        case str():
            return part
        case int():
            return chr(part)
        case {"content": content}:
            return _text(content)
        case {"text": text}:
            return str(text)
    return "".join(map(_text, part))


@pytest.mark.parametrize(
    ("engine", "program"),
    [("vllm", "zero_shot"), ("vllm", GUIDED), ("vllm", "likelihood"), ("litellm", "zero_shot"), ("litellm", GUIDED)],
)
def test_a_callback_hears_of_every_question_and_changes_no_answer(tmp_path, register, engine, program) -> None:
    def run(wire: Wire, folder: str) -> Any:
        model = spec_of(wire, engine=engine).model_dump(mode="json", exclude_defaults=True)
        settings = {"model": model, "limit": QUESTIONS, "runs_dir": tmp_path / folder}
        (found,) = medexam.run("headqa_sample", program=program, track=False, progress=False, **settings)
        return {key: (part.answer, part.text) for key, part in found.predictions.items()}

    listener = Listener()
    with serving(Wire()) as wire:
        unheard = run(wire, "unheard")
        register(listener)
        assert run(wire, "heard") == unheard
        stems = [one.stem for one in medexam.load_questions("headqa_sample") if one.key in unheard]
        assert len(stems) == QUESTIONS
        until(lambda: all(any(stem in text for text in listener.texts) for stem in stems), "every question heard of")
