"""What each kind of program says of itself; whoever carries it out asks for nothing else."""

from dataclasses import replace

import pytest

from medexam.programs.building import BUILDERS
from medexam.signatures import load_words
from medexam.specs import CellSpec, EngineNeeds, RetrieveThenAnswerSpec
from medexam.specs.programs.kinds import KINDS
from medexam.specs.programs.own import ModuleSpec
from medexam.specs.programs.tasks import TaskSpec

REQUIRED = {
    "flow": {"steps": [{"use": "longest"}, {"use": "zero_shot"}]},
    "span_reader": {"reader": "r"},
    "entailment": {"reader": "r"},
    "signature": {"signature": "question -> answer: int"},
    "ensemble": {"members": ("longest", "random")},
    "imported": {"harness": "table", "task": "a", "measure": "b", "sha256": "c", "file": "d"},
}
SILENT = {
    "ensemble",
    "imported",
    "random",
    "random_in_order",
    "blind",
    "longest",
    "abstain",
    "relevance",
    "span_reader",
    "entailment",
}
"""Kinds that ask no model."""


def _program(kind, **settings):
    fields = {"kind": kind, **REQUIRED.get(kind, {}), **settings}
    dataset = {"by_format": {"name": "cliniqlink"}, "extract_explanation": {"name": "casimedicos_spans"}}
    return CellSpec.model_validate({"name": "x", "dataset": dataset.get(kind, {}), "program": fields}).program


def test_every_kind_can_be_built() -> None:
    assert BUILDERS.keys() == KINDS.keys()


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_that_asks_a_model_has_words_and_readers(kind) -> None:
    program = _program(kind)
    assert program.asks_model == (kind not in SILENT)
    assert bool(program.readings) == program.asks_model
    # A signature's words are DSPy's own, and stand in the spec; the words of a flow are those of its parts.
    assert (program.words is not None) == (program.asks_model and kind not in ("signature", "flow"))
    if program.words is not None:
        assert load_words(program.words, "en").to_json()


@pytest.mark.parametrize(
    ("kind", "settings", "needs"),
    [
        ("zero_shot", {}, EngineNeeds(chat=True)),
        ("chain_of_thought", {"answer_format": "guided"}, EngineNeeds(guided=True, chat=True)),
        ("by_format", {"answer_format": "guided"}, EngineNeeds(guided=True, chat=True)),
        ("likelihood", {}, EngineNeeds(logprobs=True)),
        ("zero_shot", {"images": "shown"}, EngineNeeds(chat=True, pictures=True)),
        ("longest", {}, EngineNeeds()),
    ],
)
def test_an_engine_must_honour_what_requests_hold(kind, settings, needs) -> None:
    assert _program(kind, **settings).engine_needs == needs
    assert EngineNeeds(guided=True) | needs == replace(needs, guided=True)


@pytest.mark.parametrize(
    ("kind", "settings", "query"),
    [
        ("zero_shot", {}, None),
        ("retrieve_then_answer", {}, "stem"),
        ("relevance", {"query": "stem"}, "per_option"),
        ("likelihood", {}, None),
        ("likelihood", {"context": "retrieved", "query": "per_option"}, "per_option"),
        ("span_reader", {}, "stem"),
        ("entailment", {}, "per_option"),
    ],
)
def test_passages_are_looked_up_where_a_program_shows_or_reads_them(kind, settings, query) -> None:
    retrieval = _program(kind, **settings).retrieval
    assert (retrieval and retrieval.query) == query


@pytest.mark.parametrize(("kind", "spec"), KINDS.items())
def test_the_class_knows_its_kind(kind, spec) -> None:
    required = REQUIRED.get(kind, {})
    assert spec(**required) == spec(kind=kind, **required)
    # One reply in the exam's order to words alone is what every program asked for at first: what says so is left out.
    shown = {"reading", "orders", "images", "image_side", "answer_after_budget"}
    left_out = {"samples", "train"} | (shown if "samples" in spec.model_fields else set())
    left_out |= {"name"} if kind != "flow" else set()
    left_out |= {"cite", "reader", "revision"} if "cite" in spec.model_fields else set()
    left_out |= {"adapter_args", "timeout_s"} if issubclass(spec, ModuleSpec) else set()
    # Questions in words were asked without passages before.
    left_out |= {"k"} if issubclass(spec, TaskSpec) else set()
    assert list(spec(**required).model_dump()) == [name for name in spec.model_fields if name not in left_out]


def test_a_retriever_may_be_its_kind_alone() -> None:
    assert RetrieveThenAnswerSpec(retriever="bm25") == RetrieveThenAnswerSpec(retriever={"kind": "bm25"})
