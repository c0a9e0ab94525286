"""Comparisons of runs that answer in words, on real run folders over small files in CasiMedicos-Arg's form."""

import json
from pathlib import Path
from typing import Any

import pytest
from task_data import write_sentences

import medexam as package
from medexam.datasets import load_task_set
from medexam.predictions import Status
from medexam.questions import Task
from medexam.specs import DatasetSpec
from sealed_texts import check_sealed
from stored_runs import write_run

CLAIM = "Answer {n:02d} follows from the fever."
"""The labelled sentence of document `n`; its words tell the document from the others."""
REST = "Nothing else fits well here."
"""The other sentence of every explanation."""


def write_cases(folder: Path, count: int) -> Path:
    """`count` documents in the test split, one in the others, the claim labelled as a premise; gives the folder."""
    (folder / "EN").mkdir(parents=True)
    for split, numbers in (("train", [97]), ("dev", [98]), ("test", range(count))):
        text = "".join(write_sentences(_document(n)) for n in numbers)
        (folder / "EN" / f"{split}.tsv").write_text(text, encoding="utf-8")
    return folder


def _document(n: int) -> list[str]:
    first, *others = CLAIM.format(n=n).split()
    claim = " ".join([f"{first}/B-Premise", *(f"{word}/I-Premise" for word in others)])
    shown = [f"A {20 + n}-year-old man coughs.", "What is it?", f"1- Asthma {n}.", "2- Flu.", "3- A cold.", "4- Croup."]
    return ["QUESTION TYPE: DIGESTIVE", "CLINICAL CASE:", *shown, "5- nan", "CORRECT ANSWER: 3", claim, REST]


EXTRACTING = {"kind": "extract_explanation"}


@pytest.fixture
def make_run(tmp_path):
    """`make_run("name", answer)` -> the folder of a run over twelve cases in all variants; `dataset` adds to the spec.

    `answer` maps a task to the text that is quoted.
    """
    cases = write_cases(tmp_path / "cases", 12)

    def make(name, answer, **dataset: Any) -> Path:
        dataset = {"name": "casimedicos_spans", "split": "test", "path": str(cases), **dataset}
        tasks = load_task_set(DatasetSpec.model_validate(dataset))
        return write_run(
            tmp_path / "runs" / name,
            tasks,
            EXTRACTING,
            lambda task, _: _fields(task, answer(task)),
            model={"engine": "scripted", "path": f"{name}.yaml", "name": name},
            environment={"engine": {"model": name}},
            dataset=dataset,
        ).path

    return make


def _fields(task: Task, said: str) -> dict[str, Any]:
    start = task.context.find(said)
    span = {} if start < 0 else {"span": (start, start + len(said)), "alignment": "literal"}
    return {"status": Status.ANSWERED, "text": said, "reply": said, **span}


def case_of(task: Task) -> int:
    return int(task.key.split("/")[2])


def claim(task: Task) -> str:
    return CLAIM.format(n=case_of(task))


def rest(task: Task) -> str:
    return REST


def half(task: Task) -> str:
    """The claim in even cases."""
    return claim(task) if case_of(task) % 2 == 0 else REST


def found(*runs, **options) -> dict:
    return json.loads(json.dumps(package.compare(*runs, **options).document()))


def test_a_run_that_finds_the_claim_is_better_tested_on_whole_questions(make_run, tmp_path) -> None:
    runs = make_run("rest", rest), make_run("claim", claim)
    document = found(*runs)
    assert (document["questions"], document["whole_questions"], document["baseline"]) == (48, 12, "rest")
    assert document["interval"]["clusters"] == "whole questions"
    (pair,) = document["pairs"]
    f1 = pair["measures"]["component_f1"]
    assert (next(iter(pair["measures"])), pair["verdict"], f1["verdict"]) == ("component_f1", "better", "better")
    assert (f1["n"], f1["clusters"], f1["baseline"], f1["other"], f1["difference"]["value"]) == (48, 12, 0.0, 1.0, 1.0)
    assert f1["p"] == pytest.approx(2 / 2**12)
    assert f1["p_adjusted"] == pytest.approx(5 * f1["p"])
    assert pair["measures"]["quoted"]["p"] == pair["measures"]["literal"]["p"] == 1.0
    assert {name: (each["n"], each["p"]) for name, each in pair["by"]["group"].items()} == dict.fromkeys(
        ("CQ#E", "CQP#E", "Q#CE", "QP#CE"), (12, f1["p"])
    )
    (back,) = found(*reversed(runs))["pairs"]
    assert (back["verdict"], back["measures"]["component_f1"]["difference"]["value"]) == ("worse", -1.0)
    compared = package.compare(*runs)
    check_sealed("compare/words.md", compared.markdown(), tmp_path)
    check_sealed("compare/words.txt", f"{compared!r}\n", tmp_path)


def test_a_margin_is_refused_for_words(make_run) -> None:
    runs = make_run("half", half), make_run("claim", claim)
    with pytest.raises(package.MedExamError, match="the runs answer in words"):
        package.compare(*runs, equivalent_within=60)


def test_spans_with_answers_are_compared_by_f1(make_run, tmp_path) -> None:
    def item(n: int) -> dict[str, Any]:
        answers = {"text": [CLAIM.format(n=n)], "answer_start": [0]}
        context = f"{CLAIM.format(n=n)} {REST}"
        return {"id": f"case-{n}", "title": "", "question": "Why?", "context": context, "answers": answers}

    file = tmp_path / "spans.jsonl"
    file.write_text("".join(json.dumps(item(n)) + "\n" for n in range(9)))
    dataset = {"path": str(file), "split": "all"}
    runs = make_run("part", lambda task: task.context[:17], **dataset), make_run("rest", rest, **dataset)
    (pair,) = found(*runs)["pairs"]
    assert list(pair["measures"])[:4] == ["f1", "exact_match", "f1_spanish", "exact_match_spanish"]
    assert (pair["measures"]["f1"]["verdict"], pair["measures"]["exact_match"]["p"]) == ("worse", 1.0)
    text = repr(package.compare(*runs))
    assert "Intervals: no interval if every resample has the same result." in " ".join(text.split())
