"""What is asked and how replies are read are pinned to version numbers, so that neither changes without them.

Where a test here fails, the code asks or reads otherwise: raise the `version` of that kind of program, or the number in
`READINGS`, and put the new pair here. A raised `version` has everything asked anew, a raised reading has it read again.
"""

import hashlib
import json

import dspy
import pytest
import yaml

from answer_replies import VARIATIONS
from asked import requests_of
from medexam.experiments import Retrieval
from medexam.experiments.plan.passage_lookup import HitCache
from medexam.experiments.plan.text_search import TextSearch
from medexam.predictions import Prediction
from medexam.programs import (
    Entailments,
    ProgramContext,
    ReadSpan,
    RecordingEngine,
    build_prediction,
    build_program,
    read_again,
)
from medexam.programs.extraction import read_sentences
from medexam.programs.formats import read_list
from medexam.questions import Option, Task
from medexam.retrievers import Hit, Passage, Span
from medexam.serve import ScriptedEngine
from medexam.signatures import (
    FORMATS,
    ExamAdapter,
    ReasonAndAnswer,
    find_answers,
    find_span,
    parse_answer,
    read_choice,
    read_leniently,
)
from medexam.signatures import split_thinking as split
from medexam.specs import CellSpec
from medexam.specs.programs.base import READINGS
from medexam.specs.programs.kinds import KINDS
from reply_shapes import DIRECT, OPTIONS, OTHER_OPTIONS, REASONED

FOUR = (1, 2, 3, 4)
REPLIES = [
    *VARIATIONS,
    *("It is the third. {Answer: 3}", "{Answer: 3]"),
    *(
        "{Answer: 3}\nI am sure: {Answer: 3}",
        "{Answer: 3} because 1 and 2 are wrong.",
        "",
        "3",
        "Answer: 3",
        "{Answer: 3",
    ),
    *("The answer is 3.", "{Answer: 5}", "{Answer: 0}", "{Answer: 33}", "{Answer: 1, 2}", "Answer: 3}", "<Answer: 3}"),
    *("{Answer: [number]}", "{Answer: three}", "{Answer: C}", "{Answers: 3}", "{Answer: 3.5}", "{Answer: -3}", "{: 3}"),
    *("{Answer: ٣}", "{Answer: 1} or {Answer: 2}", "{Answer: 7} {Answer: 2}", "{Answer: 2} and then {Answer: 9}"),
    *("<think>{Answer: 1}</think>{Answer: 2}", "no {Answer: 1}</think>\n\nso {Answer: 2}", "<think>{Answer: 1}"),
    *("  <THINK>a</THINK> b", "<think></think>c", "a<think>b</think>c", "</think>", "Because.\n\n{Answer: 2} Yes."),
]
CONTEXT = "Asthma wheezes.  He has no fever. So a «cold» is likely!\nÁcido úrico: 7 mg/dl."
QUOTES = [
    *("He has no fever.", "«He has no fever»", "he has no FEVER, so a cold is likely", "fever", "feve", "He has", ""),
    *("It is influenza, I believe.", "acido urico", "ÁCIDO ÚRICO", "A\u0301cido u\u0301rico", "has no fever says he"),
    *("So a cold", "a cold is likely 7", '"wheezes.  He has"', "...", "he he he has no", "likely Ácido úrico 7 mg dl"),
]
NUMBERS = ["[1 - 1", "[1 - 3", "[2 - 1", "[3 - 9", "[0 - 1", "[1", "", "[1 - 2]", "1 - 2", "[1 - x", "[4 - 4"]
LISTED = ["A", "A: one, C", "A: one, C: two, three.", "B: A: one.", "C: two, three, A: one, B", "D", "", ".", "A: x"]


def _sealed(outcomes: object) -> str:
    return hashlib.sha256(json.dumps(outcomes, ensure_ascii=False, sort_keys=True).encode()).hexdigest()[:12]


def _program(spec: dict, language="en"):
    return build_program(CellSpec.model_validate({"name": "x", "program": spec}).program, language)


def _formats() -> list[object]:
    programs = [_program({"kind": "by_format", "answer_format": form}) for form in ("free", "guided")]
    tasks = [
        Task(f"c/{kind}", kind, "en", "Which?", options=("one", "A: one", "two, three"), given_reasoning=("a", "b"))
        for kind in FORMATS
    ]
    reads = [program.read(task, reply) for program in programs for task in tasks for reply in (*LISTED, *REPLIES)]
    return [*reads, [read_list(reply, ("one", "A: one", "two, three")) for reply in LISTED]]


def _choices() -> list[object]:
    rows = [{1: -1.0, 2: -1.0}, {1: -3.0, 2: -1.0, 3: -2.0}, {2: -0.1, 1: -9.0}, {1: 0.0, 2: -1e9}]
    specs = [{"kind": "likelihood", "abstain_below": least} for least in (None, 0.6, 1.0)]
    return [_program(spec)._choose(row) for spec in specs for row in rows]


def _answers(question) -> list[object]:
    adapter, outcomes = ExamAdapter(), []
    for reply in REPLIES:
        read = adapter.read_reply(ReasonAndAnswer, {"question": question}, reply)
        outcomes += [parse_answer(reply, FOUR), parse_answer(reply, FOUR, reasoned=True), find_answers(reply), read]
    return outcomes


def _spans(question) -> list[object]:
    found = [find_span(CONTEXT, reply) for reply in QUOTES]
    return [one and [one.start, one.end, one.alignment] for one in found]


def _sentences(question) -> list[object]:
    found = [read_sentences(reply, CONTEXT) for reply in NUMBERS]
    return [one and [one.start, one.end, one.alignment] for one in found]


def _letters(question):
    return question.model_copy(update={"options": tuple(Option(n, text) for n, text in enumerate("AC3D", start=1))})


MEANT = (
    3,
    3.0,
    2.5,
    0,
    True,
    None,
    "3",
    "(3)",
    "C",
    "c)",
    "They can be added",
    "3. They can be added.",
    "2. They",
    "F",
)
READ = {
    "answer": _answers,
    "thinking": lambda _: [split(reply) for reply in REPLIES],
    "choice": lambda _: _choices(),
    "format": lambda _: _formats(),
    "span": _spans,
    "sentences": _sentences,
    "module": lambda question: [
        read_choice(answer, one) for one in (question, _letters(question)) for answer in (*REPLIES, *MEANT)
    ],
    "lenient": lambda _: [
        read_leniently(reply, options, reasoned=reasoned, cut=cut)
        for options, (reply, *_) in (*((OPTIONS, row) for row in (*DIRECT, *REASONED)), *OTHER_OPTIONS)
        for reasoned in (False, True)
        for cut in (False, True)
    ],
}
READ_AS = {
    "answer": (2, "2218f1cb9cd7"),
    "thinking": (2, "f7817023fc51"),
    "choice": (1, "df8dd41d3b8d"),
    "format": (1, "0f62a16a6b24"),
    "span": (1, "84d60ea0135d"),
    "sentences": (1, "84fe9390cb52"),
    "module": (2, "c7a87f798988"),
    "lenient": (2, "50054e980d86"),
}


@pytest.mark.parametrize("reader", READINGS)
def test_a_reader_reads_as_its_version_did(reader, question) -> None:
    assert (READINGS[reader], _sealed(READ[reader](question))) == READ_AS[reader]


WORDS = {
    "en": {
        "number": "[n]",
        "zero_shot": "Z $form $example",
        "few_shot": "F $form",
        "chain_of_thought": "C $form",
        "likelihood": {"option_text": "T $question:", "label": "L $question\nAnswer:", "premise": "P:"},
    }
}
GROUPS = {kind: f"{kind} $question|$options|$lettered_options|$answer|$reasoning" for kind in FORMATS}
QUOTED = {"quote": "Q $context|$question", "sentences": "$context|$count"}
SHORT = {"answer": "A $question", "answer_from_text": "T $context|$question"}
SEARCHED = {
    group: f"{group} $question|$context|$count" for group in ("first_queries", "further_queries", "answer_query")
}
JUDGED = {group: f"{group} $question|$context|$answer" for group in ("helps", "supports")}
SIDE_WORDS = {**SEARCHED, "note": "$question: $answer", **JUDGED, "answer_yes": "Yes", "answer_no": "No"}
ANSWERS_TASKS = ("by_format", "extract_explanation", "quote", "short_answer")
TASK_WORDS = {"en": {"system": "S", "groups": {**GROUPS, **QUOTED, **SHORT}}}
EXAMPLES = {
    "en": [{"stem": "One?", "discipline": "biology", "options": ["a", "b"], "answer": 2, "rationale": "For it is."}]
}
LONGEST = {"ask": "options -> answer: int", "instructions": "Take the longest."}
ASKED = {
    "zero_shot": [{}, {"answer_format": "guided"}, {"answer_form": "angles", "answer_format": "guided"}],
    "flow": [
        {
            "answer_format": "guided",
            "steps": [
                {"retrieve": "question", "k": 2},
                {
                    "each": "passages",
                    "name": "passage",
                    "keep": "helps",
                    "do": [{"ask": "passage -> note, helps: bool"}],
                },
                {"repeat": 2, "do": [{"ask": "question, options, passages, notes -> note", "add": "notes"}]},
                {
                    "all": [
                        {"ask": "question, options, notes -> answer: int", "samples": 2, "temperature": 1},
                        LONGEST,
                    ],
                    "combine": "vote",
                },
            ],
        },
    ],
    "signature": [
        {"signature": signature, "module": module, "answer_format": form}
        for signature in ("question -> answer: int", "stem, options: list[str] -> answer: Literal['a', 'b']")
        for module in ("predict", "chain_of_thought")
        for form in ("free", "guided")
    ],
    "few_shot": [{}, {"answer_form": "angles"}],
    "chain_of_thought": [{}, {"answer_format": "guided"}],
    "retrieve_then_answer": [
        {"query": query, "then": then, "answer_format": form}
        for query in ("stem", "stem_and_options", "per_option")
        for then in ("zero_shot", "chain_of_thought")
        for form in ("free", "guided")
    ],
    "iterative_retrieval": [
        {"keep": keep, "then": then, "answer_format": form, "rounds": 2}
        for keep, then in (("answers", "zero_shot"), ("passages", "few_shot"), ("answers", "chain_of_thought"))
        for form in ("free", "guided")
    ],
    "retrieve_verify": [
        {"then": then, "answer_format": form, "k": 2, "retriever": {"kind": "bm25"}, **judge}
        for then in ("zero_shot", "chain_of_thought")
        for form in ("free", "guided")
        for judge in ({}, {"unsupported": "abstain"}, {"reader": "r"})
    ],
    "likelihood": [
        {},
        {"read": "label", "orders": "cyclic"},
        {"context": "stem_and_options", "chat_template": True, "norm": "character"},
        {"norm": "pmi", "context": "retrieved"},
        {"norm": "byte", "context": "stem_and_options", "orders": "cyclic"},
    ],
    "by_format": [{}, {"answer_format": "guided"}],
    "extract_explanation": [{}, {"answer_format": "guided"}],
    "quote": [{}, {"answer_format": "guided"}],
    "short_answer": [{}],
    "abstain": [{}],
    "random": [{}, {"seed": 3}],
    "blind": [{}, {"option": 5}],
    "ensemble": [
        {"members": ["longest", "random"], "combine": rule, **({"train": {"years": 2013}} if rule == "stacked" else {})}
        for rule in ("vote", "mean_probability", "stacked")
    ],
    "longest": [{}],
    "random_in_order": [{}],
    "relevance": [{}],
    "span_reader": [{"reader": "r"}],
    "entailment": [{"reader": "r"}],
}
"""Kind -> programs that together go through all of its code."""
SHOWN_AS = {
    "abstain": (1, "42b42682850e"),
    "blind": (1, "5b1006d04b5d"),
    "by_format": (1, "5f8ff007cc85"),
    "chain_of_thought": (1, "5bf2ce285053"),
    "ensemble": (1, "79c34c22cf2d"),
    "entailment": (1, "2bc483b55b0e"),
    "extract_explanation": (1, "618fef333926"),
    "few_shot": (1, "c5557fa54502"),
    "likelihood": (1, "bd3577bcf156"),
    "longest": (1, "d27b3e6f0657"),
    "random_in_order": (1, "5b848447f2aa"),
    "quote": (1, "618fef333926"),
    "random": (1, "50518314cfee"),
    "iterative_retrieval": (1, "73b66f572f3b"),
    "relevance": (1, "d27b3e6f0657"),
    "retrieve_then_answer": (1, "61f30fac8b31"),
    "retrieve_verify": (1, "95243397ad86"),
    "short_answer": (1, "27d92425820d"),
    "flow": (1, "e4c124fe6631"),
    "signature": (1, "cdf510d561a3"),
    "span_reader": (1, "f3baf93456a9"),
    "zero_shot": (1, "a2e46d64b4c2"),
}


class _Passages:
    def search(self, queries, k):
        return [
            [
                Hit(Passage(f"{rank}{len(query) % 7}", "t", f"{query} {rank}.", "s"), len(query) / rank, rank)
                for rank in (1, 2)
            ]
            for query in queries
        ]


class _Reader:
    """A local model that reads the first words of a question."""

    def read_span(self, question):
        return ReadSpan(question, Span("Are hyperpolarizing spread", 0, 9, 1.0), (), "r")

    def read_supports(self, question):
        return {"14": {2: -0.1}, "24": {3: -0.2}}

    def read_entailments(self, question):
        return Entailments({2: (-0.5, "x"), 3: (-0.5, "y")}, (), "r")


class _Members:
    """Three members that disagree: one with scores, one with an answer alone, one without."""

    weights = (1.0, 0.5, 2.0)

    def find(self, question):
        numbers = question.option_numbers
        alike = {"question": question.key, "program": "p", "spec_digest": "d"}
        scores = {number: -float(place) for place, number in enumerate(numbers)}
        return (
            Prediction(**alike, status="answered", answer=numbers[0], option_scores=scores),
            Prediction(**alike, status="answered", answer=numbers[1]),
            Prediction(**alike, status="unanswered", reason="unparsed"),
        )


SCRIPTED = {"text": "Because.\n{Answer: 2}", "logprobs": [[-1.0 - place] for place in range(5)]}


def _prompt(request) -> list[object]:
    config = request.config
    turns = [[message.role, message.text] for message in request.messages]
    system = request.system
    if system is not None and not isinstance(system, str):
        system = "".join(part.text for part in system)
    return [system, turns, config.max_tokens, config.stop and list(config.stop), config.extensions]


def _shown(kind: str, spec: dict, question, tmp_path) -> list[object]:
    files = {"prompt": TASK_WORDS if kind in ANSWERS_TASKS else WORDS, "examples": EXAMPLES}
    files["retrieval_prompt"] = {"en": {"system": "S", "groups": SIDE_WORDS}}
    fields = {"kind": kind, **spec}
    cell = CellSpec.model_validate({"name": "x", "program": fields}).program
    if cell.words is not None and cell.words.examples is None:
        del files["examples"]
    for name in files.keys() & type(cell).model_fields.keys():
        (tmp_path / name).write_text(yaml.safe_dump(files[name], sort_keys=False))
        fields[name] = str(tmp_path / name)
    cell = CellSpec.model_validate({"name": "x", "program": fields}).program
    retrieval = None
    asked = [question, question.model_copy(update={"options": (Option(2, "b"), Option(7, "Are spread"))})]
    if kind == "likelihood":
        words = tuple(Option(number, word) for number, word in enumerate(("a", "ó", "ccc", "d", "e"), start=1))
        asked = [question.model_copy(update={"options": words})]
    if (settings := cell.retrieval) is not None:
        cache = HitCache(tmp_path, f"{len(fields)}{spec}"[:40])
        retrieval = Retrieval(settings, lambda _: _Passages(), cache, size=9)
        retrieval.fill(asked)
    if kind in ANSWERS_TASKS:
        asked = [
            Task(f"c/{group}", group, "en", "Q?", "" if group == "alone" else CONTEXT, ("x", "y"), "g", ("a", "b"))
            for group in (FORMATS if kind == "by_format" else ["Q#CE", *(["alone"] if kind == "short_answer" else [])])
        ]
    search = None if retrieval is None else TextSearch(retrieval)
    context = ProgramContext(
        finder=retrieval,
        search=search,
        reader=_Reader(),
        supports=_Reader(),
        members=_Members(),
        in_order=lambda _: asked,
    )
    program = build_program(cell, "en", context)
    engine = ScriptedEngine({"*": SCRIPTED})
    lm = dspy.LM("medexam/scripted", engine=RecordingEngine(engine.sync), cache=False, num_retries=0)
    with dspy.context(lm=lm):
        said = [program(question=one) for one in asked]
    for one, answer in zip(asked, said, strict=True):
        stored = build_prediction(one, answer, program=kind, spec_digest="d", latency_s=0.0)
        assert not requests_of(engine) or read_again(program, one, stored) == stored
    if requests_of(engine):
        return [*map(_prompt, requests_of(engine)), [one.get("scores") and vars(one.scores) for one in said]]
    return [[one.answer, one.get("scores") and vars(one.scores)] for one in said]


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"imported"}))
def test_a_kind_asks_as_its_version_did(kind, question, tmp_path) -> None:
    question = question.model_copy(update={"language": "gl"} if kind == "span_reader" else {})
    spec = CellSpec.model_validate({"name": "x", "program": {"kind": kind, **ASKED[kind][0]}}).program
    shown = [_shown(kind, each, question, tmp_path) for each in ASKED[kind]]
    assert (spec.version, _sealed(shown)) == SHOWN_AS[kind]
