"""Kinds as steps: the YAML that is shown of a kind is the same program, and settings stand in their places."""

import pytest
import yaml

from medexam.specs import build_cells, build_identity, digest

BM25 = {"kind": "bm25"}
SIGNATURE = {"kind": "signature", "signature": "question, options -> answer: int"}
PROGRAMS = [
    {"kind": "zero_shot", "answer_format": "guided", "samples": 3, "orders": "cyclic"},
    {"kind": "few_shot", "samples": 2, "prompt_language": "es", "answer_form": "angles"},
    {"kind": "chain_of_thought", "answer_format": "guided", "orders": "reversed", "max_tokens": 90},
    {"kind": "likelihood", "read": "label", "context": "retrieved", "retriever": BM25},
    {"kind": "retrieve_then_answer", "then": "few_shot", "query": "per_option", "k": 3, "retriever": BM25},
    {**SIGNATURE, "module": "chain_of_thought", "answer_format": "guided", "instructions": "Look closely."},
    {"kind": "retrieve_verify", "unsupported": "abstain", "then": "chain_of_thought", "prompt_language": "es"},
    {"kind": "retrieve_verify", "answer_form": "angles", "k": 2, "query_language": "es"},
    {"kind": "iterative_retrieval", "rounds": 2, "queries": 4, "k": 1, "keep": "passages"},
]


def cell_of(fields):
    model = {"engine": "scripted", "path": "none", "temperature": 0.7}
    return build_cells({"name": "x", "dataset": "headqa_sample", "program": fields, "model": model}, {})[1][0]


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_the_steps_of_a_kind_are_the_kind(program, medexam) -> None:
    """So all that is made of it is the same, its digest too, whatever it is called."""
    cell = cell_of(program)
    settings = [part for key, value in program.items() if key != "kind" for part in ("--set", f"program.{key}={value}")]
    code, shown, _ = medexam("schema", program["kind"], *settings)
    assert code == 0
    pasted = cell_of(yaml.safe_load(shown))
    steps, spec = pasted.program, cell.program
    digests = [digest(build_identity(one, fingerprint="0", words={})) for one in (cell, pasted)]
    assert digests[0] == digests[1]
    assert (steps.asking.retrieval, steps.asking.engine_needs, steps.budget(None)) == (
        spec.asking.retrieval,
        spec.asking.engine_needs,
        spec.budget(None),
    )
    assert steps.asking.saved_as == spec.asking.saved_as


def test_settings_are_shown_in_their_places(medexam) -> None:
    _, text, _ = medexam("schema", "retrieve_verify", "--set", "program.k=7", "--set", "unsupported=abstain")
    steps = yaml.safe_load(text)["steps"]
    assert steps[0] == {"retrieve": "stem", "k": 7}
    assert steps[-1] == {"unless": "supported", "do": [{"use": "abstain"}]}
    for arguments, said in (
        (("retrieve_verify", "--set", "rounds=2"), "rounds"),
        (("retrieve_verfy",), "did you mean 'retrieve_verify'"),
    ):
        code, _, refused = medexam("schema", *arguments)
        assert code == 2
        assert said in refused
