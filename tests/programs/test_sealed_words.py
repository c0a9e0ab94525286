"""What is asked of questions in words is sealed: where a seal breaks, the code asks otherwise, and digests change."""

import hashlib
import json

import pytest

from medexam.questions import Task

TEXT = "Asthma wheezes.  He has no fever. So a cold is likely!"
DATASETS = {"quote": "spans", "short_answer": "words"}
REPLY = "Because.\n{Answer: 2}"


def task(group, language="en", context=""):
    return Task(f"c/{group}", group, language, "Q?", context, ("x", "y"), "g", ("a", "b"))


ASKED = {
    "quote": [task("Q#CE", language, TEXT) for language in ("en", "es", "fr", "it")],
    "short_answer": [task("alone"), task("Q#CE", context=TEXT), task("alone", "es")],
}
SEALS = {
    ("quote", "free"): "2f19d1e0c83c",
    ("quote", "guided"): "5fb6ae20e6ba",
    ("short_answer", "free"): "b277e70091fd",
}


@pytest.mark.parametrize(("kind", "form"), SEALS)
def test_a_kind_asks_as_it_is_sealed(ask_task, kind, form) -> None:
    program = {"kind": kind, **({} if form == "free" else {"answer_format": form})}
    parts = []
    for one in ASKED[kind]:
        for dialogue in ask_task(program, one, REPLY, dataset=DATASETS[kind]).dialogues:
            settings = [dialogue.sampling.get("max_tokens"), dialogue.sampling.get("stop", []), dialogue.choices]
            parts.append([dialogue.turns_with_opening, *settings])
    sealed = hashlib.sha256(json.dumps(parts, ensure_ascii=False, sort_keys=True).encode()).hexdigest()[:12]
    assert sealed == SEALS[kind, form]
