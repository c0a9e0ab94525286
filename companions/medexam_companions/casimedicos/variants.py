"""The four ways to pose a question whose answer is the part of the explanation that argues for the right option.

A name says what the question holds, `#`, and what the context holds: Case, Question, Possible answers, Explanation
(Goenaga et al. 2023, "Explanatory argument extraction of correct answers in resident medical exams"). A file in the
form of SQuAD that poses questions in one of them is written in all four: a span is found again in the explanation of
its document, by its words and, where they stand twice, by its place.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from medexam.datasets import SpanItem, locate_files, read_squad
from medexam.errors import DatasetError
from medexam.files import write_whole
from medexam.questions import Language
from medexam_companions.casimedicos.documents import CaseDocument, read_casimedicos

VARIANTS = ("CQ#E", "CQP#E", "Q#CE", "QP#CE")
_NEEDED = (
    "name a SQuAD-form file of HiTZ/casimedicos-squad, such as es_train_casimedicos_squad.json, since CasiMedicos-Arg "
    "holds no spans"
)


def explanation_variants(document: CaseDocument) -> dict[str, tuple[str, str]]:
    """Map CQ#E, CQP#E, Q#CE and QP#CE, in this order, to question and context, which ends in the explanation.

    Parts are joined by a space, options by " @@ ".
    """
    parts = {"C": document.case, "Q": document.question, "P": " @@ ".join(document.options), "E": document.explanation}

    def compose(letters: str) -> str:
        return " ".join(filter(None, (parts[letter] for letter in letters)))

    return {name: (compose(name.partition("#")[0]), compose(name.partition("#")[2])) for name in VARIANTS}


def write_variants(
    file: str | Path, out: str | Path, language: Language = "es", path: Path | None = None
) -> tuple[str, ...]:
    """Write `CQ#E.json` and the three others into the folder `out`, of a `file` in SQuAD's form; of a document with
    several questions, the first.

    `path` holds CasiMedicos-Arg; None takes the usual places. Returns the ids of questions that are left out: without a
    span, or with one that stands in the explanation of no document. Raises `DatasetError` if a file is missing or
    cannot be read, and if no span is found again; `OSError` if a file cannot be written.
    """
    if not Path(file).is_file():
        raise DatasetError(f"{file} is no file: {_NEEDED}")
    place = locate_files("casimedicos", language, path)[0]
    documents = read_casimedicos(place, language)
    entries: dict[str, dict[str, Any]] = {}
    """Variant -> key of a document -> its entry of SQuAD's `data`."""
    unplaced: list[str] = []
    for item in read_squad(Path(file)):
        placement = _find_document(item, documents)
        if placement is None:
            unplaced.append(item.key)
            continue
        document, answers = placement
        for name, (question, context) in explanation_variants(document).items():
            begins = len(context) - len(document.explanation)
            spans = [{"text": text, "answer_start": begins + start} for start, text in answers]
            qas = [{"id": f"{document.key}/{name}", "question": question, "answers": spans}]
            entry = {"title": document.key, "paragraphs": [{"context": context, "qas": qas}]}
            entries.setdefault(name, {}).setdefault(document.key, entry)
    if not entries:
        raise DatasetError(f"{file}: no span lies in an explanation of {place} in {language}: {_NEEDED}")
    Path(out).mkdir(parents=True, exist_ok=True)
    for name, by_document in entries.items():
        squad = {"version": "1.1", "data": list(by_document.values())}
        write_whole(Path(out) / f"{name}.json", json.dumps(squad, ensure_ascii=False, indent=1) + "\n")
    return tuple(unplaced)


_Placed = tuple[CaseDocument, list[tuple[int, str]]]
"""A document, and place and text of each span in its explanation."""


def _find_document(item: SpanItem, documents: Sequence[CaseDocument]) -> _Placed | None:
    """Find the one document of the item, with place and text of each span in its explanation; None if there is none."""
    if not item.answers or item.anomalies:
        return None
    context = _collapse(item.context)
    matches = [document for document in documents if document.explanation in context]
    if len(matches) == 1:
        begins = context.find(matches[0].explanation)
        places = [len(_collapse(item.context[: answer.start] + "|")) - 1 - begins for answer in item.answers]
        return _place_answers(item, matches[0], places)
    placements = [each for document in documents if (each := _place_answers(item, document, [])) is not None]
    return placements[0] if len(placements) == 1 else None


def _place_answers(item: SpanItem, document: CaseDocument, places: Sequence[int]) -> _Placed | None:
    """Place the item's spans in the explanation, where `places` says or where their words stand once; else None."""
    answers = []
    for number, answer in enumerate(item.answers):
        text = _collapse(answer.text)
        if places and places[number] >= 0 and document.explanation.startswith(text, places[number]):
            answers.append((places[number], text))
        elif text and document.explanation.count(text) == 1:
            answers.append((document.explanation.find(text), text))
        else:
            return None
    return document, answers


def _collapse(text: str) -> str:
    return " ".join(text.split())
