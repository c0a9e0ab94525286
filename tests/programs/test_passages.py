"""Programs that see passages: where they stand in a prompt, and what happens where they do not fit."""

import dspy
import pytest
from pydantic import ValidationError

from asked import requests_of
from medexam.experiments import Retrieval
from medexam.predictions import Reason, Status
from medexam.programs import ProgramContext, build_failure, build_prediction, build_program
from medexam.questions import Task
from medexam.retrievers import Hit, Passage
from medexam.serve import ScriptedEngine
from medexam.signatures import render_question
from medexam.specs import FewShotSpec, LikelihoodSpec, RetrieveThenAnswerSpec
from medexam.specs.programs.controls import RelevanceSpec
from medexam.specs.programs.tasks import ByFormatSpec, ShortAnswerSpec
from recorded import recorded

HITS = [
    Hit(Passage("a", "Potentials", "word " * 200 + "end.", "test"), 5.0, 1),
    Hit(Passage("b", "", "Short.", "test"), 4.0, 2),
]


class Finder:
    def find(self, question):
        return HITS

    def find_per_option(self, question):
        return {1: [], 2: HITS[1:], 3: HITS, 4: HITS, 5: []}


def ask(spec, question, reply):
    engine = ScriptedEngine(reply)
    program = build_program(spec, "en", ProgramContext(finder=Finder()))
    lm = dspy.LM("medexam/scripted", **recorded(engine), cache=False, num_retries=0)
    with dspy.context(lm=lm):
        said = program(question=question)
    prediction = build_prediction(question, said, program=spec.label, spec_digest="d", latency_s=0.1)
    return prediction, [
        [one.text for one in request.messages if one.role == "user"][-1] for request in requests_of(engine)
    ]


def retrieve(**fields) -> RetrieveThenAnswerSpec:
    return RetrieveThenAnswerSpec(kind="retrieve_then_answer", **fields)


def test_passages_stand_before_the_question(question) -> None:
    prediction, (turn,) = ask(retrieve(), question, lambda _: "{Answer: 2}")
    assert turn == f"Potentials\n{HITS[0].passage.content}\n\nShort.\n\n{render_question(question)}"
    assert prediction.answer == 2
    assert [(p.id, p.source, p.score) for p in prediction.passages] == [("a", "test", 5.0), ("b", "test", 4.0)]
    assert prediction.passages_cut == 0


@pytest.mark.parametrize("answer_format", ["free", "guided"])
def test_reasoning_sees_the_passages_in_every_call(question, answer_format) -> None:
    spec = retrieve(then="chain_of_thought", answer_format=answer_format)
    prediction, turns = ask(spec, question, lambda _: "It adds up. {Answer: 3}")
    assert len(turns) == (2 if answer_format == "guided" else 1)
    assert all(turn.startswith("Potentials\n") for turn in turns)
    assert prediction.rationale == "It adds up."


def test_solved_examples_stand_before_the_passages(question) -> None:
    engine = ScriptedEngine(lambda _: "{Answer: 2}")
    program = build_program(retrieve(then="few_shot"), "en", ProgramContext(finder=Finder()))
    plain = build_program(FewShotSpec(kind="few_shot"), "en")
    lm = dspy.LM("medexam/scripted", **recorded(engine), cache=False, num_retries=0)
    with dspy.context(lm=lm):
        assert program(question=question).answer == plain(question=question).answer == 2
    behind, alone = ([(one.role, one.text) for one in request.messages] for request in requests_of(engine))
    assert len(alone) > 2
    assert behind[:-1] == alone[:-1]
    assert behind[-1] == ("user", f"Potentials\n{HITS[0].passage.content}\n\nShort.\n\n{alone[-1][1]}")


def test_examples_belong_to_few_shot_behind_passages() -> None:
    with pytest.raises(ValidationError, match="examples belongs to `then: few_shot`"):
        retrieve(examples="mine.yaml")


TASK = Task(
    "set/list/1", "list", "en", "Which are vitamins?", options=("Retinol", "Glucose", "Thiamine"), given_answer=""
)


@pytest.mark.parametrize(
    ("spec", "calls"),
    [
        (ByFormatSpec(kind="by_format", retriever={"kind": "bm25"}), 1),
        (ByFormatSpec(kind="by_format", answer_format="guided", retriever={"kind": "bm25"}), 3),
        (ShortAnswerSpec(kind="short_answer", retriever={"kind": "bm25"}), 1),
    ],
)
def test_a_question_in_words_is_asked_behind_passages_in_every_call(spec, calls) -> None:
    _, plain = ask(spec.model_copy(update={"retriever": None}), TASK, lambda _: "Retinol, Thiamine")
    prediction, turns = ask(spec, TASK, lambda _: "Retinol, Thiamine")
    assert len(turns) == calls
    assert turns == [f"Potentials\n{HITS[0].passage.content}\n\nShort.\n\n{turn}" for turn in plain]
    assert [one.id for one in prediction.passages] == ["a", "b"]
    assert spec.label.endswith("-bm25")


def test_a_question_in_words_is_looked_up_by_its_own_text() -> None:
    def queries(query):
        spec = ShortAnswerSpec(kind="short_answer", retriever={"kind": "bm25"}, query=query)
        return Retrieval(spec.retrieval, None, None, size=9).queries(TASK)

    assert queries("stem") == {0: "Which are vitamins?"}
    assert queries("stem_and_options") == {0: "Which are vitamins?\nRetinol\nGlucose\nThiamine"}
    assert queries("per_option")[3] == "Which are vitamins? Thiamine"


def test_option_texts_are_read_behind_the_passages(question) -> None:
    spec = LikelihoodSpec(kind="likelihood", context="retrieved")
    rows = [[-1.0] * len(option.text.split()) for option in question.options]
    rows[0][0] = -0.5
    prediction, (context,) = ask(spec, question, lambda _: {"logprobs": rows})
    assert context.endswith(f"Short.\n\n{question.stem}")
    assert prediction.answer == 1
    assert len(prediction.passages) == 2


def test_passages_are_cut_and_the_question_never(question) -> None:
    def small_context(turn: str):
        return {"error": "context"} if len(turn) > 700 else "{Answer: 2}"

    prediction, turns = ask(retrieve(), question, small_context)
    assert all(turn.endswith(render_question(question)) for turn in turns)
    assert len(turns) > 1
    assert prediction.answer == 2
    whole = len("\n\n".join(hit.passage.text for hit in HITS))
    shown = len(turns[-1]) - len(render_question(question)) - 2
    assert prediction.passages_cut == whole - shown > 0


def test_a_question_that_never_fits_stays_unanswered(question) -> None:
    spec = retrieve()
    with pytest.raises(dspy.utils.exceptions.ContextWindowExceededError) as raised:
        ask(spec, question, lambda _: {"error": "context"})
    prediction = build_failure(question, raised.value, program=spec.label, spec_digest="d")
    assert (prediction.status, prediction.reason) == (Status.UNANSWERED, Reason.CONTEXT_OVERFLOW)


def test_relevance_takes_the_first_of_the_best(question) -> None:
    program = build_program(RelevanceSpec(kind="relevance"), "en", ProgramContext(finder=Finder()))
    said = program(question=question)
    assert said.answer == 3
    assert [hit.passage.id for hit in said.hits] == ["a"]


def test_a_program_that_retrieves_needs_passages() -> None:
    with pytest.raises(ValueError, match="needs a finder"):
        build_program(retrieve(), "en")
