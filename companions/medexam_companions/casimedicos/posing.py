"""The four variants of CasiMedicos' questions, with the spans that a file in the form of SQuAD holds.

The archive knows the parts of a document but no spans; the file knows spans in contexts of any variant. A span is found
again in the document's explanation, by its words and, where they stand twice, by its place.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from medexam.datasets import SpanItem, locate_files, read_squad
from medexam.errors import DatasetError
from medexam.questions import Language
from medexam_companions.casimedicos.documents import CaseDocument, CaseLanguage, read_casimedicos
from medexam_companions.casimedicos.exam import casimedicos_place
from medexam_companions.casimedicos.extraction import explanation_variants

NEEDED = (
    "name a SQuAD-form file of HiTZ/casimedicos-squad, such as es_train_casimedicos_squad.json, since CasiMedicos-Arg "
    "holds no spans"
)
"""What a refusal asks for."""
_Placed = tuple[CaseDocument, list[tuple[int, str]]]
"""A document, and place and text of each span in its explanation."""


@dataclass(frozen=True)
class PosedSpans:
    """The questions of each variant, and those of the file that have none."""

    documents: Mapping[str, Mapping[str, Any]]
    """Variant -> its questions as a JSON document in the form of SQuAD 1.1."""
    unplaced: tuple[str, ...]
    """Ids whose spans stand in the explanation of no document, or that have no span."""

    @property
    def count(self) -> int:
        """The number of questions of each variant."""
        return len(next(iter(self.documents.values()))["data"])


def pose_spans(spans: Path, language: Language, path: Path | None) -> PosedSpans:
    """Pose each question of the file `spans` as CQ#E, CQP#E, Q#CE and QP#CE; of a document with several, the first.

    `path` holds CasiMedicos-Arg; None takes the usual places. Raises `DatasetError` if a file is missing or cannot be
    read, and if no span is found again.
    """
    if spans.suffix not in {".json", ".jsonl", ".parquet"} or not spans.is_file():
        raise DatasetError(f"{spans} is no file in SQuAD's form: {NEEDED}")
    place = casimedicos_place(locate_files("casimedicos", language, path)[0])
    documents = read_casimedicos(place, cast(CaseLanguage, language))
    by_variant: dict[str, list[Mapping[str, Any]]] = {}
    unplaced: list[str] = []
    posed_keys: set[str] = set()
    for item in read_squad(spans):
        placement = _find_document(item, documents)
        if placement is None:
            unplaced.append(item.key)
            continue
        document, answers = placement
        if document.key in posed_keys:
            continue
        posed_keys.add(document.key)
        for name, entry in _entries(document, answers):
            by_variant.setdefault(name, []).append(entry)
    if not by_variant:
        raise DatasetError(f"{spans}: no span lies in an explanation of {place} in {language}: {NEEDED}")
    return PosedSpans(
        MappingProxyType({name: {"version": "1.1", "data": entries} for name, entries in by_variant.items()}),
        tuple(unplaced),
    )


def _find_document(item: SpanItem, documents: Sequence[CaseDocument]) -> _Placed | None:
    """Find the one document of the item, with place and text of each span in its explanation; None if there is none."""
    if not item.answers or item.anomalies:
        return None
    context = _collapse(item.context)
    whole = [document for document in documents if document.explanation in context]
    if len(whole) == 1:
        begins = context.find(whole[0].explanation)
        places = [len(_collapse(item.context[: answer.start] + "|")) - 1 - begins for answer in item.answers]
        return _place_answers(item, whole[0], places)
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


def _entries(document: CaseDocument, answers: Sequence[tuple[int, str]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Make each variant's name and its entry of SQuAD's `data`; the explanation ends every context."""
    for variant in explanation_variants(document):
        begins = len(variant.context) - len(document.explanation)
        question = {
            "id": f"{document.key}/{variant.name}",
            "question": variant.question,
            "answers": [{"text": text, "answer_start": begins + start} for start, text in answers],
        }
        yield variant.name, {"title": document.key, "paragraphs": [{"context": variant.context, "qas": [question]}]}


def _collapse(text: str) -> str:
    return " ".join(text.split())
