"""Callbacks of litellm's: they hear of every question that a run asks, and the run comes out as without them."""

from typing import Any

import pytest
from wire_server import Wire, serving

import medexam
from medexam.serve.engines.litellm_calls import get_litellm
from medexam.serve.engines.posted_calls import CALLBACK_LISTS
from waiting import until

QUESTIONS = 6
GUIDED = {"kind": "zero_shot", "answer_format": "guided"}


@pytest.fixture
def listen(monkeypatch):
    """Register a callback, and return the list of the texts that it hears of."""
    litellm = get_litellm()
    for name in CALLBACK_LISTS:
        monkeypatch.setattr(litellm, name, [])

    def register() -> list[str]:
        from litellm.integrations.custom_logger import CustomLogger

        class Listener(CustomLogger):
            async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
                texts.append(_text(kwargs.get("messages") or kwargs.get("input")))

        texts: list[str] = []
        monkeypatch.setattr(litellm, "callbacks", [Listener()])
        return texts

    return register


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
def test_a_callback_hears_of_every_question(tmp_path, listen, engine, program) -> None:
    name = "openai/tiny" if engine == "litellm" else "tiny"

    def ask(wire: Wire, folder: str) -> Any:
        model = {"engine": engine, "name": name, "endpoints": [wire.address]}
        settings = {"model": model, "limit": QUESTIONS, "runs_dir": tmp_path / folder}
        (run,) = medexam.run("headqa_sample", program=program, track=False, progress=False, **settings)
        return run

    with serving(Wire()) as wire:
        unheard = ask(wire, "unheard")
        texts = listen()
        run = ask(wire, "heard")
        assert [(key, part.answer, part.text) for key, part in run.predictions.items()] == [
            (key, part.answer, part.text) for key, part in unheard.predictions.items()
        ]
        stems = [
            question.stem for question in medexam.load_questions("headqa_sample") if question.key in run.predictions
        ]
        assert len(stems) == QUESTIONS
        until(lambda: all(any(stem in text for text in texts) for stem in stems), "every question heard of")


def test_a_callback_that_fails_is_told_in_one_line(tmp_path, monkeypatch, listen, caplog) -> None:
    litellm = get_litellm()
    listen()
    from litellm.integrations.custom_logger import CustomLogger

    class Failing(CustomLogger):
        async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
            raise ValueError("no such desk")

    monkeypatch.setattr(litellm, "callbacks", [Failing()])
    with serving(Wire()) as wire:
        model = {"engine": "vllm", "name": "tiny", "endpoints": [wire.address]}
        settings = {"model": model, "limit": 2, "runs_dir": tmp_path, "track": False, "progress": False}
        medexam.run("headqa_sample", program="zero_shot", **settings)
        told = "medexam: warning: a callback of litellm's failed: ValueError: no such desk"
        until(lambda: any(told in line for line in caplog.messages), "the warning")
    assert "Traceback" not in caplog.text
