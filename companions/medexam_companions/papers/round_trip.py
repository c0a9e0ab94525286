"""Round-trip scores: questions that were translated and translated back, against the source."""

from collections.abc import Mapping
from typing import Any

from medexam.errors import DatasetError, SpecError
from medexam.measures import find_benchmark
from medexam.specs import DatasetSpec, put, validate
from medexam_companions.papers.beside import Product, set_beside
from medexam_companions.papers.paper import Grid, PaperEntry
from medexam_companions.translation import BERT_MODEL, BertScore, QuestionText, compare_texts, text_of


def make_round_trip(entry: PaperEntry, overrides: Mapping[str, Any]) -> Product:
    """Score the questions that came back, `back.KEY`, against the source, `source.KEY`, by their keys.

    `through` is the language in between, the paper's row; `bert` is BERTScore's model, false leaves it out. Raises
    `SpecError` for another key or without a `back`, and `DatasetError` if no key is in both or a file is missing.
    """
    settings: dict[str, Any] = {"source": dict(entry.item.dataset), "back": {}, "through": "", "bert": BERT_MODEL}
    for key, value in overrides.items():
        if key not in ("through", "bert") and not key.startswith(("source.", "back.")):
            raise SpecError(f"--set {key}: {entry.name} takes source.KEY, back.KEY, through=LANGUAGE and bert=MODEL")
        put(settings, key, value)
    if not settings["back"] or not settings["through"]:
        raise SpecError(
            f"{entry.name}: name the questions that came back and the language in between, such as --set "
            "back.path=FOLDER --set through=gl"
        )
    source = validate(DatasetSpec, settings["source"])
    back = validate(DatasetSpec, settings["source"] | settings["back"])
    references, backs = _texts(source), _texts(back)
    keys = [key for key in references if key in backs]
    if not keys:
        raise DatasetError(f"{entry.name}: no question of {back.label} has the key of one in the source")
    bert = BertScore(str(settings["bert"])) if settings["bert"] else None
    bleu, f1, signatures = compare_texts([backs[key] for key in keys], [references[key] for key in keys], bert)
    rows = {str(settings["through"]): (round(bleu / 100, 2), None if f1 is None else round(f1, 2))}
    alone = len(references) + len(backs) - 2 * len(keys)
    note = f"{len(keys):,} questions; {alone:,} are in only one of the two. {'; '.join(signatures)}."
    grid = Grid(columns=("BLEU", "BERTScore F1"), rows=rows)
    return set_beside(entry, grid, note=note, questions=len(keys), unpaired=alone, signatures=signatures)


def _texts(spec: DatasetSpec) -> dict[str, QuestionText]:
    return {question.key: text_of(question) for question in find_benchmark(spec).load(spec).questions}
