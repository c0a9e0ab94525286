"""What a page says of each question: what every run was asked and answered, a line of the list, and all its details.

It makes JSON-ready values and knows nothing of how they are packed.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from medexam.experiments.compare.runs import run_names
from medexam.experiments.store.data_changes import load_items
from medexam.experiments.store.parquet import read_own_scores
from medexam.experiments.store.stored_run import AnyRun
from medexam.predictions import Prediction, Status
from medexam.predictions.calls import ModelCall
from medexam.predictions.evidence.kinds import evidence_entry
from medexam.tables import percent, six_digits


@dataclass(frozen=True)
class QuestionEntry:
    """One question as one run was asked it."""

    key: str
    language: str
    place: Mapping[str, Any]
    """Where it stands, as its benchmark tells, such as exam and number."""
    gold: int | None
    """The right option's printed number; None if there is none."""
    wording: Mapping[str, Any]
    """What is shown of it."""
    others: tuple[int, ...] = ()
    """Printed numbers of further options that are right as well."""


@dataclass(frozen=True)
class Answers:
    """One run, question by question."""

    name: str
    """What tells the run from the others of the page."""
    questions: Mapping[str, QuestionEntry]
    """By key, in the run's order."""
    predictions: Mapping[str, Prediction]
    """By key; a question that is not asked yet has none."""
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Measure as tables call it -> question -> its score, a fraction of 1; empty if right or wrong says it all."""
    own: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Metric of the user's own -> question -> its score, in any unit."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """Question -> digest of what was answered, by which a mark is imported; answers without a reply have none."""
    run_id: str = ""
    folder: str = ""
    """Absolute path of the run's folder."""


def read_answers(runs: Sequence[AnyRun]) -> list[Answers]:
    """Read what each of `runs` was asked and answered, in their order."""
    return [_read(run, name) for run, name in zip(runs, run_names(runs), strict=True)]


def _read(run: AnyRun, name: str) -> Answers:
    benchmark, items, predictions = run.benchmark, load_items(run.folder), run.folder.read_predictions()
    return Answers(
        name,
        {
            item.key: QuestionEntry(
                key=item.key,
                language=item.language,
                place=benchmark.place(item),
                gold=_number(benchmark.expected(items.golds[item.key])),
                others=getattr(items.golds[item.key], "others", ()),
                wording=benchmark.wording(item, items.golds[item.key]),
            )
            for item in items.questions
        },
        predictions,
        scores={
            benchmark.name_measure(measure): item_scores
            for measure, item_scores in benchmark.item_scores(items, predictions).items()
        },
        own=read_own_scores(run.folder),
        digests={
            key: answer_digest(prediction, benchmark.expected(items.golds[key]))
            for key, prediction in predictions.items()
            if prediction.reply is not None and key in items.golds
        },
        run_id=run.record.run_id,
        folder=str(run.folder.path.resolve()),
    )


def answer_digest(prediction: Prediction, expected: Any) -> str:
    """Hash what a model answered and what was expected, JSON-ready, into eight hexadecimal digits.

    A page gives it to each mark, and the import of marks compares it with the run.
    """
    words = json.dumps([prediction.reply, prediction.text, prediction.answer, expected])
    return hashlib.sha256(words.encode()).hexdigest()[:8]


def _number(gold: Any) -> int | None:
    return gold if isinstance(gold, int) else None


LONGEST_TEXT = 8_000
"""Characters that are kept at most of a reply or a rationale."""
SHORTEST_LIMIT = 400
"""Characters that are kept at least, however many replies there are."""

RIGHT, WRONG, UNANSWERED, FAILED, MISSING, NOT_ASKED, UNKNOWN = "rwufm-a"
"""What the index says of a question in one run; `UNKNOWN` is an answer whose right one nobody here knows."""


def outcome(question: QuestionEntry | None, prediction: Prediction | None) -> str:
    """Return one letter for what became of a `question` in a run that was asked it, or was not (None)."""
    if question is None:
        return NOT_ASKED
    if prediction is None:
        return MISSING
    if prediction.status is not Status.ANSWERED:
        return FAILED if prediction.status is Status.FAILED else UNANSWERED
    if question.gold is None:
        return UNKNOWN
    return RIGHT if prediction.answer in (question.gold, *question.others) else WRONG


def build_question_index(keys: Sequence[str], runs: Sequence[Answers], facets: Mapping[str, str]) -> dict[str, Any]:
    """Build what the list and its filters need of the questions of `keys`: a value a question, or one a question and
    run.
    """
    firsts = [next(run.questions[key] for run in runs if key in run.questions) for key in keys]
    return {
        "runs": [run.name for run in runs],
        "run_ids": [run.run_id for run in runs],
        "run_folders": [run.folder for run in runs],
        "keys": keys,
        "numbers": [question.place.get("number") for question in firsts],
        "facets": [_facet(title, [question.place.get(name) for question in firsts]) for name, title in facets.items()],
        "outcomes": [
            "".join(outcome(run.questions.get(key), run.predictions.get(key)) for key in keys) for run in runs
        ],
    }


def _facet(title: str, question_values: Sequence[Any]) -> dict[str, Any]:
    """Index the values of one facet, and for each question the place of its own among them; -1 for none."""
    values = sorted({value for value in question_values if value is not None})
    places = {value: place for place, value in enumerate(values)}
    return {"name": title, "values": values, "of": [places.get(value, -1) for value in question_values]}


def join_stems(key: str, runs: Sequence[Answers]) -> str:
    """Join the stem in every language that was asked, a line each."""
    stems = [str(run.questions[key].wording.get("stem", "")) for run in runs if key in run.questions]
    return "\n".join(dict.fromkeys(" ".join(stem.split()) for stem in stems))


def build_entry(key: str, runs: Sequence[Answers], longest: int) -> dict[str, Any]:
    """Build all that the page shows of one question; each wording of it stands once.

    `longest` is how many characters are kept of a reply or a rationale; a longer one loses its middle.
    """
    variants: list[QuestionEntry] = []
    answers: list[dict[str, Any] | None] = []
    for run in runs:
        if key not in run.questions:
            answers.append(None)
            continue
        if run.questions[key] not in variants:
            variants.append(run.questions[key])
        scores = [
            [name, percent(score_by_key[key])] for name, score_by_key in run.scores.items() if key in score_by_key
        ]
        scores += [[name, f"{score_by_key[key]:.6g}"] for name, score_by_key in run.own.items() if key in score_by_key]
        answer = _answer(run.predictions.get(key), longest) | ({"measures": scores} if scores else {})
        if key in run.digests:
            answer["digest"] = run.digests[key]
        answers.append(answer | {"wording": variants.index(run.questions[key])})
    return {"key": key, "wordings": [_wording(variant) for variant in variants], "answers": answers}


def text_limit(runs: Sequence[Answers], characters: int) -> int:
    """Compute how many characters each reply and rationale may keep, so that all of them together keep `characters` at
    most.

    Short ones leave their share to the others. No less than `SHORTEST_LIMIT`, and no more than `LONGEST_TEXT`.
    """
    lengths = sorted(min(len(text), LONGEST_TEXT) for text in _all_texts(runs))
    for place, length in enumerate(lengths):
        share = characters // (len(lengths) - place)
        if length > share:
            return max(share, SHORTEST_LIMIT)
        characters -= length
    return LONGEST_TEXT


def _all_texts(runs: Sequence[Answers]) -> Iterator[str]:
    for run in runs:
        for key in run.questions:
            if key in run.predictions:
                yield from (text for text in _written(run.predictions[key]) if text is not None)


def _written(prediction: Prediction) -> tuple[str | None, str | None]:
    """Return the reply, and the rationale where the reply does not hold it already."""
    reply, rationale = prediction.reply, prediction.rationale
    if rationale is not None and reply is not None and rationale.strip() in reply:
        rationale = None
    return reply, rationale


def _wording(question: QuestionEntry) -> dict[str, Any]:
    entry: dict[str, Any] = {"language": question.language, "gold": question.gold, "exam": question.place.get("exam")}
    if question.others:
        entry["others"] = list(question.others)
    return entry | dict(question.wording)


def _answer(prediction: Prediction | None, longest: int) -> dict[str, Any]:
    """Return what a run made of the question, without what is None; empty where it has not answered yet."""
    if prediction is None:
        return {}
    reply, rationale = _written(prediction)
    calls = [
        {"turns": [[role, _shorten(content, LONGEST_TEXT)] for role, content in turns]}
        | ({} if call.text is None else {"reply": _shorten(call.text, longest)})
        for call in prediction.calls
        if (turns := _turns(call))
    ]
    if any("reply" in call for call in calls):
        reply = rationale = None
    answer = {
        "status": prediction.status.value,
        "reason": prediction.reason.value if prediction.reason else None,
        "answer": prediction.answer,
        "text": None if prediction.text == (prediction.reply or "").strip() else _shorten(prediction.text, longest),
        "reply": _shorten(reply, longest),
        "rationale": _shorten(rationale, longest),
        "calls": calls or None,
        "finish_reason": prediction.finish_reason,
        "prompt_tokens": prediction.prompt_tokens,
        "completion_tokens": prediction.completion_tokens,
        "thinking_tokens": prediction.thinking_tokens,
        "latency_s": six_digits(prediction.latency_s),
        "waiting_s": six_digits(prediction.waiting_s),
        **evidence_entry(prediction),
    }
    return {name: value for name, value in answer.items() if value is not None}


def _turns(call: ModelCall) -> list[tuple[str, str]]:
    """Return role and words of each turn that was sent; none where nobody knows what was."""
    turns = [(turn["role"], turn["content"]) for turn in call.messages]
    return turns if call.prompt is None else [*turns, ("prompt", call.prompt)]


def _shorten(text: str | None, longest: int) -> str | None:
    if text is None or len(text) <= longest:
        return text
    half = longest // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n[… {left_out} characters are left out here; predictions.jsonl has them …]\n{text[-half:]}"
