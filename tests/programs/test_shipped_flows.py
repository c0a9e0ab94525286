"""Kinds as flows: their YAML is the same program, and what is asked and answered by its steps is what the kind does."""

import pytest
import yaml

from medexam.cli.views.programs import render_program
from medexam.errors import SpecError
from medexam.specs import build_cells
from medexam.specs.programs.kinds import KINDS
from medexam.specs.programs.shipped_flows import flow_document, shipped_text

BM25 = {"kind": "bm25"}
SIGNATURE = {"kind": "signature", "signature": "question, options -> answer: int"}
FLOWS = [
    {"kind": "zero_shot"},
    {"kind": "zero_shot", "answer_format": "guided", "samples": 3, "orders": "cyclic"},
    {"kind": "few_shot", "samples": 2, "prompt_language": "es", "answer_form": "angles"},
    {"kind": "chain_of_thought", "answer_format": "guided", "orders": "reversed", "max_tokens": 90},
    {"kind": "likelihood", "read": "label", "orders": "cyclic"},
    {"kind": "likelihood", "read": "label", "context": "retrieved", "retriever": BM25},
    {"kind": "retrieve_then_answer", "retriever": BM25},
    {"kind": "retrieve_then_answer", "then": "few_shot", "query": "per_option", "k": 3, "retriever": BM25},
    {"kind": "retrieve_then_answer", "then": "chain_of_thought", "samples": 2, "orders": "reversed", "retriever": BM25},
    SIGNATURE,
    {**SIGNATURE, "module": "chain_of_thought", "answer_format": "guided", "instructions": "Look closely."},
    {"kind": "signature", "signature": "question, options, passages -> answer: int", "retriever": BM25, "k": 1},
]
AGAIN = [
    {"kind": "retrieve_verify", "retriever": BM25},
    {"kind": "retrieve_verify", "unsupported": "abstain", "then": "chain_of_thought", "prompt_language": "es"},
    {"kind": "retrieve_verify", "reader": "some/nli", "least": 0.7, "k": 2, "query_language": "es"},
    {"kind": "iterative_retrieval", "answer_format": "guided"},
    {"kind": "iterative_retrieval", "rounds": 2, "queries": 4, "k": 1, "keep": "passages", "retrieval_prompt": "mine"},
]


def _spec(program):
    document = {"name": "x", "dataset": {"name": "headqa_sample"}, "program": program}
    model = {"engine": "scripted", "path": "none", "temperature": 0.7}
    return build_cells({**document, "model": model}, {})[1][0].program


@pytest.mark.parametrize("program", [*FLOWS, *AGAIN], ids=str)
def test_the_steps_of_a_kind_are_the_kind(program) -> None:
    """So all that is made of it is the same, its digest too, whatever it is called."""
    spec = _spec(program)
    document = yaml.safe_load(yaml.safe_dump(flow_document(spec)))
    assert _spec(document) == spec
    assert _spec({"steps": [{"use": program}]}) == spec
    named = _spec({**document, "name": "mine"})
    assert named.label.startswith("mine")
    assert named.model_copy(update={"name": None}) == spec


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_shown(kind) -> None:
    text = render_program(kind, {})
    assert text.startswith("# ")
    shown = yaml.safe_load(text)
    if kind in ("ensemble", "flow", "imported"):
        assert shown is None
    elif shipped_text(kind) is None:
        assert shown["steps"][0].keys() == {"use"}
    else:
        assert "use" not in text
        spec = _spec(shown) if kind not in ("by_format", "extract_explanation", "quote", "short_answer") else None
        assert spec is None or spec.kind == kind


def test_settings_are_shown_in_their_places() -> None:
    shown = yaml.safe_load(render_program("retrieve_verify", {"program.k": 7, "unsupported": "abstain"}))
    assert shown["steps"][0] == {"retrieve": "stem", "k": 7}
    assert shown["steps"][-1] == {"unless": "supported", "do": [{"use": "abstain"}]}
    with pytest.raises(SpecError, match=r"program\.retrieve_verify\.rounds|rounds"):
        render_program("retrieve_verify", {"rounds": 2})
    with pytest.raises(SpecError, match="did you mean retrieve_verify"):
        render_program("retrieve_verfy", {})
