"""The answers of stored exam runs as raters see them."""

from dataclasses import replace

import pytest

from medexam.companions.audit.items import read_audit_items
from medexam.datasets import load_exam_set
from medexam.errors import SpecError
from medexam.experiments import RunFolder
from medexam.predictions import Failure, Reason, Status
from medexam.signatures import render_question
from medexam.specs import DatasetSpec


def reason(question, gold):
    """Right at odd numbers; one question fails, one holds no answer."""
    if question.number % 10 == 0:
        return {"status": Status.FAILED, "failure": Failure(kind="LMTransportError", message="gone")}
    if question.number % 10 == 2:
        return {"status": Status.UNANSWERED, "reason": Reason.UNPARSED, "reply": "I cannot say."}
    answer = gold if question.number % 2 else gold % 4 + 1
    return {"status": Status.ANSWERED, "answer": answer, "reply": f"Because.\n{{Answer: {answer}}}"}


def test_items_hold_what_a_rater_needs_and_the_automatic_score(make_folder) -> None:
    folder = make_folder("cot", "chain_of_thought", reason)
    exams = load_exam_set(DatasetSpec(limit=8))
    predictions = folder.read_predictions()

    items = read_audit_items([folder])

    judged = [one for one in exams.questions if predictions[one.key].reply is not None]
    assert [item.key for item in items] == [question.key for question in judged]
    for item, question in zip(items, judged, strict=True):
        gold = exams.golds[question.key].number
        assert (item.run, item.group, item.question) == ("cot", question.exam.discipline, render_question(question))
        assert item.reference == f"{gold}. {next(o.text for o in question.options if o.number == gold)}"
        assert item.reply == predictions[question.key].reply
        assert item.scores == {"accuracy": float(predictions[question.key].answer == gold)}


def test_the_probability_of_the_answer_is_a_score(make_folder) -> None:
    def scored(question, gold):
        scores = dict.fromkeys(question.option_numbers, 0.0)
        return {"status": Status.ANSWERED, "answer": gold, "reply": "So.", "option_scores": scores}

    exams = load_exam_set(DatasetSpec(limit=8))
    items = read_audit_items([make_folder("scored", "zero_shot", scored)])
    for item, question in zip(items, exams.questions, strict=True):
        assert item.scores == {"accuracy": 1.0, "probability": pytest.approx(1 / len(question.options))}


def test_a_run_without_replies_is_refused(make_folder) -> None:
    folder = make_folder("longest", "longest", lambda question, gold: {"status": Status.ANSWERED, "answer": gold})
    with pytest.raises(SpecError, match="run longest holds no reply to judge"):
        read_audit_items([folder])


def test_two_runs_of_one_id_are_refused(make_folder, tmp_path) -> None:
    folder = make_folder("cot", "chain_of_thought", reason)
    copy = RunFolder(tmp_path / "copy")
    copy.create()
    copy.write_record(replace(folder.read_record()))
    with pytest.raises(SpecError, match="two of the folders hold run cot: name each run once"):
        read_audit_items([folder, copy])
