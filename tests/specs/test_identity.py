"""The identity has one form however a spec is written, and every key that can change an answer changes it."""

from pathlib import Path

import pytest
from pydantic import ValidationError

import medexam
from medexam.specs import (
    CATALOGUE,
    CellSpec,
    build_cells,
    build_identity,
    differing_keys,
    digest,
    load_document,
)

LIBRARY = Path(medexam.__file__).parent / "experiments/library"
IN_WORDS = {"by_format": "cliniqlink", "extract_explanation": "casimedicos_spans"}
"""Kind -> the data set that it answers, which a package brings."""
BASES = {
    **{kind: {"kind": kind} for kind in ("zero_shot", "few_shot", "chain_of_thought", "retrieve_then_answer")},
    **{kind: {"kind": kind} for kind in ("iterative_retrieval", "retrieve_verify")},
    "zero_shot_shown": {"kind": "zero_shot", "images": "shown"},
    "likelihood": {"kind": "likelihood", "context": "stem_and_options"},
    "likelihood_retrieved": {"kind": "likelihood", "context": "retrieved"},
    **{kind: {"kind": kind} for kind in ("relevance", "random", "blind", "longest")},
    **{kind: {"kind": kind} for kind, name in IN_WORDS.items() if name in CATALOGUE},
}
OTHERS = {
    "samples": 3,
    "cite": True,
    "rounds": 4,
    "queries": 4,
    "keep": "passages",
    "unsupported": "abstain",
    "answer_after_budget": True,
    "images": "shown",
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
    "read_by": "echo",
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
WRITES = {"zero_shot", "few_shot", "chain_of_thought", "retrieve_then_answer"}
"""Kinds that write their answer within a budget of their own."""
BY_CONTENT = {"kind", "name", "reading", "prompt", "prompt_language", "examples", "load", "retrieval_prompt"}
INERT = {
    "zero_shot_shown": {"answer_after_budget", "images"},
    **{kind: {"image_side"} for kind in ("zero_shot", "few_shot", "chain_of_thought")},
    "likelihood": {"retriever", "k", "query", "query_language"},
    "relevance": {"query"},
    "likelihood_retrieved": {"orders"},
    "by_format": {"k", "query", "query_language"},
    "retrieve_then_answer": {"image_side"},
    "iterative_retrieval": {"orders", "image_side"},
    "retrieve_verify": {"image_side"},
}
"""Base -> keys that change nothing there, or that it cannot take."""


def _cell(program: dict, model: dict | None = None) -> CellSpec:
    dataset = {"name": IN_WORDS.get(program["kind"], "headqa_sample")}
    return CellSpec.model_validate({"name": "x", "dataset": dataset, "model": model or {}, "program": program})


def _digest(cell: CellSpec) -> str:
    program = cell.program
    retrieval, reader = program.asking.retrieval, program.asking.local_reader
    known = build_identity(
        cell,
        fingerprint="0" * 64,
        words={},
        retriever=retrieval.retriever.model_dump(mode="json") if retrieval else None,
        translations=retrieval.query_language if retrieval else None,
        reader={"reader": str(reader)} if reader else None,
        model={"name": cell.model.label},
    )
    return digest(known)


@pytest.mark.parametrize("base", BASES)
def test_a_value_that_is_written_out_changes_nothing(base) -> None:
    cell = _cell(BASES[base])
    whole = CellSpec.model_validate(dict(reversed(cell.model_dump(mode="json").items())))
    assert _digest(cell) == _digest(whole)


@pytest.mark.parametrize(
    ("base", "key"),
    [
        (base, key)
        for base, program in BASES.items()
        for key in sorted(type(_cell(program).program).model_fields.keys() - BY_CONTENT - INERT.get(base, set()))
    ],
)
def test_every_other_key_of_a_program_changes_it(base, key) -> None:
    assert _digest(_cell({**BASES[base], key: OTHERS[key]})) != _digest(_cell(BASES[base]))


@pytest.mark.parametrize("base", sorted(INERT.keys() & BASES))
def test_a_key_that_a_program_does_not_look_at_changes_nothing_or_is_refused(base) -> None:
    for key in INERT[base]:
        try:
            cell = _cell({**BASES[base], key: OTHERS[key]})
        except ValidationError:
            continue
        assert _digest(cell) == _digest(_cell(BASES[base]))


@pytest.mark.parametrize("name", sorted({path.stem for path in LIBRARY.glob("*.yaml")} - {"headqa_optimize"}))
def test_shipped_specs_have_one_identity_a_cell_however_they_are_written(name) -> None:
    _, cells = build_cells(load_document(name), {})
    found = [_digest(cell) for cell in cells]
    assert len(set(found)) == len(cells)
    for cell, known in zip(cells, found, strict=True):
        whole = CellSpec.model_validate(cell.model_dump(mode="json"))
        named = {"trace_questions": 5, "name": "other"}
        if cell.program.kind in WRITES:
            settings = cell.program.model_dump() | {"max_tokens": cell.program.budget(cell.model.max_tokens)}
            named["program"] = type(cell.program).model_validate(settings)
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
    if cell.program.kind in WRITES:
        own = cell.program.budget(None)
        written = (_cell({**program, "max_tokens": own}), _cell(program, {"max_tokens": own}))
        ignored = _cell({**program, "max_tokens": own}, {"max_tokens": 9})
        assert {_digest(one) for one in (*written, ignored)} == {_digest(cell)}
    elif cell.program.kind == "likelihood":
        assert _digest(_cell(program, {"temperature": temperature})) == _digest(cell)


def test_the_questions_that_are_looked_up_count() -> None:
    cell = _cell(BASES["retrieve_then_answer"])
    one, same, other = (
        digest(build_identity(cell, fingerprint="0" * 64, words={}, retriever={"kind": "bm25"}, translations=known))
        for known in ("a", "a", "b")
    )
    assert one == same != other


def _digest_of(overrides: dict, words: str = "w", **dataset: object) -> str:
    _, (cell,) = build_cells({"name": "x", **({"dataset": dataset} if dataset else {})}, overrides)
    return digest(build_identity(cell, fingerprint="0" * 64, words={"instructions": words}))


@pytest.mark.parametrize(
    "overrides",
    [
        {"dataset.years": [2016]},
        {"dataset.limit": 5},
        {"dataset.images": "without"},
        {"model.device": "cpu"},
        {"name": "y"},
    ],
)
def test_which_questions_and_where_is_no_part_of_the_identity(overrides: dict) -> None:
    assert _digest_of(overrides) == _digest_of({})


@pytest.mark.parametrize(
    "overrides",
    [
        {"dataset.language": "es"},
        {"dataset.name": "headqa_v1"},
        {"program.answer_format": "guided"},
        {"program.max_tokens": 3},
        {"model.temperature": 0.5},
    ],
)
def test_what_an_answer_depends_on_is_part_of_the_identity(overrides: dict) -> None:
    assert _digest_of(overrides) != _digest_of({})


def test_words_and_model_count() -> None:
    assert _digest_of({}, "other") != _digest_of({})
    _, (cell,) = build_cells({"name": "x"}, {})
    found = [digest(build_identity(cell, fingerprint="0" * 64, words={}, model={"weights": one})) for one in "aab"]
    assert found[0] == found[1] != found[2]


def test_a_control_does_not_depend_on_the_model() -> None:
    control = {"program.kind": "longest"}
    assert _digest_of({**control, "model.temperature": 1.0}) == _digest_of(control)


def test_alterations_count() -> None:
    plain, own = {"name": "headqa_v1"}, "own_code:alter"
    altered = [{**plain, "alter": alter} for alter in (own, {"how": own, "seed": 3}, "own_code:other")]
    assert len({_digest_of({}, **dataset) for dataset in (plain, *altered)}) == 4
    assert _digest_of({}, **plain, alter={"how": own}) == _digest_of({}, **altered[0])


@pytest.mark.skipif("casimedicos" not in CATALOGUE, reason="the packages that bring the data sets are not installed")
def test_of_packages_data_sets_explanations_count_and_a_selection_does_not() -> None:
    case = {"name": "casimedicos", "language": "es"}
    assert _digest_of({}, **case, explained=True) != _digest_of({}, **case) == _digest_of({}, **case, explained=False)
    for (kind, dataset), chosen in zip(IN_WORDS.items(), ({"formats": ["list"]}, {"variants": ["CQ#E"]}), strict=True):
        program = {"program.kind": kind}
        assert _digest_of(program, name=dataset, **chosen) == _digest_of(program, name=dataset)


def test_differences_name_the_keys() -> None:
    assert differing_keys({"a": 1, "b": {"c": 1, "d": 2}}, {"a": 1, "b": {"c": 3, "d": 2}, "e": 0}) == ["b.c", "e"]
