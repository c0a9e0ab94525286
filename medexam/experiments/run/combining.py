"""Which answers of an ensemble are made, and which anew: those whose members say something else than they did."""

from dataclasses import replace

from medexam.experiments.plan.cells import AnyCell
from medexam.predictions import Prediction
from medexam.programs import build_prediction
from medexam.questions import Question


def combine_again(planned: AnyCell) -> AnyCell:
    """Return the cell with what its members have answered by now; its pending questions are those to be combined.

    A question that a member has not answered waits. A program that combines nothing is as it was. The folder must be
    locked. Raises `RunFolderError` where a member's folder is damaged.
    """
    members = planned.members
    if members is None:
        return planned
    members.read()
    with planned.folder.opened_predictions() as stored:
        pending = tuple(
            question
            for question in planned.question_set.questions
            if members.find(question) is not None and _differs(planned, question, stored.get(question.key))
        )
    return replace(planned, pending=pending)


def _differs(planned: AnyCell, question: Question, stored: Prediction | None) -> bool:
    if stored is None:
        return True
    output = planned.program(question=question)
    prediction = build_prediction(
        question, output, program=stored.program, spec_digest=stored.spec_digest, latency_s=0.0
    )
    return prediction.to_json() != stored.to_json()
