"""What a reply is decides how it counts, whichever engine brings it."""

from typing import Any

import pytest
from reply_kinds import COUNTED, KINDS, EndingWire
from wire_server import serving

import medexam
from medexam.predictions import Status
from medexam.serve import TIMING


@pytest.fixture
def ask_kinds(ask):
    """Kind -> the prediction of a question whose reply was of that kind."""

    def call(engine: str, wire: EndingWire, **program: Any) -> dict[str, medexam.Prediction]:
        name = {"name": "openai/tiny"} if engine == "litellm" else {}
        with serving(wire):
            document = {
                "name": "kinds",
                "dataset": {"name": "headqa_sample", "limit": len(wire.kinds)},
                "model": {"engine": engine, **name, "endpoints": [wire.address]},
                "program": {"kind": "zero_shot", **program},
            }
            predictions = ask(document)[0].predictions
        questions = medexam.load_questions("headqa_sample", limit=len(wire.kinds))
        return {wire.replied[one.printed]: predictions[one.key] for one in questions}

    return call


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TIMING, "attempts", 1)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


@pytest.mark.parametrize("engine", ["vllm", "litellm"])
def test_a_reply_counts_for_what_it_is(engine: str, ask_kinds) -> None:
    predictions = ask_kinds(engine, EndingWire())
    counted = {
        kind: (str(one.status), one.answer, one.reason and str(one.reason), one.lenient)
        for kind, one in predictions.items()
    }
    assert counted == COUNTED
    kept = {kind: one.finish_reason for kind, one in predictions.items() if one.status is not Status.FAILED}
    assert kept == {kind: KINDS[kind][1] for kind in kept}


def test_a_filtered_choice_is_filtered(ask_kinds) -> None:
    predictions = ask_kinds("litellm", EndingWire(kinds=("filtered",), tokenize=False), answer_format="guided")
    assert {str(one.reason) for one in predictions.values()} == {"filtered"}
