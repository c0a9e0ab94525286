"""The identity has one form however a spec is written, and every key that can change an answer changes it."""

import pytest

from medexam.specs import CellSpec, LikelihoodSpec, build_cells, build_identity, digest, library_names, load_document
from medexam.specs.programs.kinds import KINDS
from medexam.specs.programs.replies import ReplySpec

BASES = {
    **{kind: {"kind": kind} for kind in ("zero_shot", "few_shot", "chain_of_thought", "retrieve_then_answer")},
    **{kind: {"kind": kind} for kind in ("iterative_retrieval", "retrieve_verify")},
    "zero_shot_shown": {"kind": "zero_shot", "images": "shown"},
    "likelihood": {"kind": "likelihood", "context": "stem_and_options"},
    "likelihood_retrieved": {"kind": "likelihood", "context": "retrieved"},
    **{
        kind: {"kind": kind} for kind in ("relevance", "random", "blind", "longest", "by_format", "extract_explanation")
    },
    **{kind: {"kind": kind, "reader": "who/what"} for kind in ("span_reader", "entailment")},
}
OTHERS = {
    "samples": 3,
    "cite": True,
    "rounds": 4,
    "queries": 4,
    "keep": "passages",
    "least": 0.7,
    "unsupported": "abstain",
    "answer_after_budget": True,
    "images": "only",
    "image_side": 512,
    "answer_format": "guided",
    "answer_form": "angles",
    "max_tokens": 7,
    "then": "chain_of_thought",
    "retriever": {"kind": "bm25"},
    "k": 9,
    "query": "stem_and_options",
    "query_language": "es",
    "read": "label",
    "read_by": "trie",
    "norm": "sum",
    "context": "stem",
    "chat_template": True,
    "orders": "cyclic",
    "abstain_below": 0.5,
    "reader": "who/else",
    "revision": "r",
    "answer_tokens": 5,
    "seed": 3,
    "option": 2,
}
"""Key of a program -> a value that no base has."""
BY_CONTENT = {"name", "reading", "prompt", "prompt_language", "examples", "load", "retrieval_prompt"}
INERT = {
    "zero_shot_shown": {"answer_after_budget"},
    **{kind: {"image_side"} for kind in ("zero_shot", "few_shot", "chain_of_thought")},
    "likelihood": {"retriever", "k", "query", "query_language"},
    "relevance": {"query"},
    "likelihood_retrieved": {"orders"},
    "span_reader": {"context"},
    "by_format": {"k", "query", "query_language"},
    "retrieve_then_answer": {"reader", "revision", "image_side"},
    **{kind: {"samples", "orders", "image_side"} for kind in ("iterative_retrieval", "retrieve_verify")},
}
"""Base -> keys that change nothing there, or that it cannot take."""


def _cell(program: dict, model: dict | None = None) -> CellSpec:
    dataset = {"name": {"by_format": "cliniqlink", "extract_explanation": "casimedicos_spans"}.get(program["kind"])}
    return CellSpec.model_validate(
        {"name": "x", "dataset": dataset if dataset["name"] else {}, "model": model or {}, "program": program}
    )


def _digest(cell: CellSpec) -> str:
    program = cell.program
    retrieval, reader = program.retrieval, program.local_reader
    known = build_identity(
        cell,
        fingerprint="0" * 64,
        words={},
        retriever=retrieval.retriever.model_dump(mode="json") if retrieval else None,
        reader={"name": str(reader.model), "revision": reader.revision} if reader else None,
        model={"name": cell.model.label},
    )
    return digest(known)


@pytest.mark.parametrize("base", BASES)
def test_a_value_that_is_written_out_changes_nothing(base) -> None:
    cell = _cell(BASES[base])
    whole = CellSpec.model_validate(dict(reversed(cell.model_dump(mode="json").items())))
    named = cell.model_copy(update={"program": cell.program.normal(cell.dataset.language)})
    assert _digest(cell) == _digest(whole) == _digest(named)


@pytest.mark.parametrize(
    ("base", "key"),
    [
        (base, key)
        for base, program in BASES.items()
        for key in sorted(KINDS[program["kind"]].model_fields.keys() - {"kind"} - BY_CONTENT - INERT.get(base, set()))
    ],
)
def test_every_other_key_of_a_program_changes_it(base, key) -> None:
    assert _digest(_cell({**BASES[base], key: OTHERS[key]})) != _digest(_cell(BASES[base]))


@pytest.mark.parametrize("base", INERT)
def test_a_key_that_a_program_does_not_look_at_changes_nothing(base) -> None:
    left_out = {"orders", "context", "samples", "reader", "revision", "image_side", "answer_after_budget"}
    keys = INERT[base] - left_out
    assert _digest(_cell({**BASES[base], **{key: OTHERS[key] for key in keys}})) == _digest(_cell(BASES[base]))


@pytest.mark.parametrize("name", [name for name in library_names() if name != "headqa_optimize"])
def test_shipped_specs_have_one_identity_a_cell_however_they_are_written(name) -> None:
    _, cells = build_cells(load_document(name), {})
    found = [_digest(cell) for cell in cells]
    assert len(set(found)) == len(cells)
    for cell, known in zip(cells, found, strict=True):
        whole = CellSpec.model_validate(cell.model_dump(mode="json"))
        named = {"program": cell.program.normal(cell.dataset.language), "trace_questions": 5, "name": "other"}
        if isinstance(cell.program, ReplySpec):
            budget = cell.program.budget(cell.model.max_tokens)
            named["program"] = named["program"].model_copy(update={"max_tokens": budget})
        assert _digest(whole) == _digest(cell.model_copy(update=named)) == known


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("temperature", [0.0, 0.5])
def test_sampling_counts_where_something_is_sampled(base, temperature) -> None:
    program = BASES[base]
    cell = _cell(program)
    asks = cell.program.budget(None) is not None
    with_seed = [_digest(_cell(program, {"temperature": temperature, "seed": seed})) for seed in (0, 2)]
    assert (with_seed[0] != with_seed[1]) == (asks and temperature > 0)
    budgets = [_digest(_cell(program, {"max_tokens": tokens})) for tokens in (None, 9)]
    assert (budgets[0] != budgets[1]) == asks
    if isinstance(cell.program, ReplySpec):
        own = cell.program.budget(None)
        written = (_cell({**program, "max_tokens": own}), _cell(program, {"max_tokens": own}))
        ignored = _cell({**program, "max_tokens": own}, {"max_tokens": 9})
        assert {_digest(one) for one in (*written, ignored)} == {_digest(cell)}
    elif isinstance(cell.program, LikelihoodSpec):
        assert _digest(_cell(program, {"temperature": temperature})) == _digest(cell)


def test_the_version_of_a_kind_counts(monkeypatch) -> None:
    cell = _cell(BASES["longest"])
    before = _digest(cell)
    monkeypatch.setattr(type(cell.program), "version", 2)
    assert _digest(cell) != before


def test_the_questions_that_are_looked_up_count() -> None:
    cell = _cell(BASES["retrieve_then_answer"])
    one, same, other = (
        digest(build_identity(cell, fingerprint="0" * 64, words={}, retriever={"kind": "bm25"}, translations=known))
        for known in ("a", "a", "b")
    )
    assert one == same != other
