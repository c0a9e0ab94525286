"""A stored run whose readers of replies were of an earlier version is read again as it was, and nothing is asked."""

import json

import pytest

from one_question import BY_QUERY

DRAWN = {"temperature": 0.7, "seed": 5}
SIGNED = {"ask": "question, options -> answer: int"}
PROGRAMS = [
    {"kind": "zero_shot"},
    {"kind": "zero_shot", "answer_format": "guided", "samples": 3, "orders": "cyclic"},
    {"kind": "few_shot", "answer_form": "angles", "orders": {"random": 3}},
    {"kind": "chain_of_thought", "samples": 2},
    {"kind": "chain_of_thought", "answer_format": "guided"},
    {"kind": "likelihood", "read": "label", "orders": "cyclic"},
    {"kind": "retrieve_then_answer", "cite": True, "answer_format": "guided"},
    {"kind": "retrieve_verify", "unsupported": "abstain"},
    {"kind": "iterative_retrieval", "answer_format": "guided"},
    {"kind": "signature", "signature": SIGNED["ask"]},
    {"kind": "signature", "signature": SIGNED["ask"], "module": "chain_of_thought", "answer_format": "guided"},
    {"steps": [{"repeat": 2, "do": [{**SIGNED, "answer_format": "guided"}]}]},
]


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_a_stored_reply_is_read_again_as_it_was(ask, finder, program) -> None:
    if "retriev" in program.get("kind", ""):
        program = {**program, "retriever": finder(BY_QUERY)}
    made = []

    def reply(_):
        made.append(1)
        number = len(made) % 5 + 1
        text = f"Because {number}.\n\n[[ ## answer ## ]]\n{number}\n\n[[ ## completed ## ]] {{Answer: {number}}} [1]"
        return {"text": text, "logprobs": [[-float(place + number)] for place in range(5)]}

    first = ask(program, reply, model=DRAWN)
    path = first.run.folder / "spec.json"
    record = json.loads(path.read_text())
    assert record["readings"]
    path.write_text(json.dumps(record | {"readings": dict.fromkeys(record["readings"], 0)}))
    again = ask(program, reply, model=DRAWN, fresh=False)
    assert again.dialogues == []
    assert again.said == first.said
    assert json.loads(path.read_text())["readings"] == record["readings"]
