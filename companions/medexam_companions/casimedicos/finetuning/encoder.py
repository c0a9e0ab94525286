"""Fine-tunes an encoder on spans by transformers' own Trainer, and leaves a folder whole or not at all."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from medexam.errors import DatasetError, SpecError
from medexam.experiments import describe_environment
from medexam.files import whole_folder, written_by_library
from medexam.library_logging import quiet_transformers
from medexam.metrics import SpanSetScores, count_outcomes, score_spans
from medexam_companions.casimedicos.finetuning.settings import FinetuningSettings
from medexam_companions.casimedicos.finetuning.training import FinetuningObserver, teach
from medexam_companions.casimedicos.finetuning.windows import (
    Lessons,
    SpanFile,
    join_lessons,
    make_lessons,
    read_span_file,
    seen_before,
)
from medexam_companions.casimedicos.readers.loading import LoadedReader, load_trainable
from medexam_companions.casimedicos.readers.spans import TransformersSpanReader

RECORD = "finetuning.json"
PREDICTIONS = "validation_predictions.jsonl"


@dataclass(frozen=True)
class Finetuned:
    """What came out."""

    folder: Path
    record: dict[str, Any]
    """What `finetuning.json` holds."""
    losses: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    """Stage -> step and mean loss since the one before."""
    validated: dict[str, SpanSetScores] = field(default_factory=dict)
    """Scores on the validation file by SQuAD v1.1's rule, `squad`, and by MLQA's Spanish rule; empty without a file."""


def finetune(settings: FinetuningSettings, observer: FinetuningObserver) -> Finetuned:
    """Learn from the files and write the model to `settings.out`, with its record and what it says of the validation.

    The same settings, files and machine give the same weights. Raises `SpecError` where the folder exists,
    `DatasetError` where a file cannot be read or holds nothing to learn from, and `EngineError` where the model cannot
    be loaded or its loss is no number.
    """
    with _drafting(settings.out) as draft:
        return _finetune(settings, observer, draft)


def _finetune(settings: FinetuningSettings, observer: FinetuningObserver, draft: Path) -> Finetuned:
    files = {"intermediate": [read_span_file(path) for path in settings.intermediate]} if settings.intermediate else {}
    read = partial(read_span_file, variant=settings.variant, unstructured=settings.unstructured)
    files["train"] = [read(path) for path in settings.train]
    validation = read(settings.validation) if settings.validation is not None else None
    if validation and not any(item.answers for item in validation.items):
        raise DatasetError(f"{validation.path}: none of its questions has an answer to score against")
    repeats = seen_before(validation, [file for stage in files.values() for file in stage]) if validation else []
    loaded = load_trainable(settings.model, settings.revision, settings.device, settings.seed)
    lessons_by_stage = {
        name: [make_lessons(file, loaded.tokenizer, settings.window, settings.shared) for file in stage_files]
        for name, stage_files in files.items()
    }
    lessons_by_file = _name_files(lessons_by_stage)
    for line in [line for lessons in lessons_by_file.values() for line in lessons.warnings()]:
        observer.warns(line)
    if validation and repeats:
        observer.warns(
            f"{validation.path}: {len(repeats):,} of {len(validation.items):,} questions are in the training data "
            "too, so the score counts what was memorised: leave them out to see what the model can do"
        )
    start = time.monotonic()
    losses = {}
    for name, lessons in lessons_by_stage.items():
        epochs = settings.epochs if name == "train" else settings.intermediate_epochs
        losses[name] = teach(loaded, name, join_lessons(lessons), epochs, settings, observer)
    record: dict[str, Any] = {
        "settings": settings.document(),
        "base": {"name": loaded.weights.label, "revision": loaded.weights.revision},
        "data": {name: lessons.document() for name, lessons in lessons_by_file.items()},
        "device": loaded.device,
        "seconds": round(time.monotonic() - start, 1),
        "losses": losses,
        "environment": describe_environment(),
    }
    validated, predictions = dict[str, SpanSetScores](), None
    if validation is not None:
        predictions = _answer(loaded, validation, settings)
        pairs = [(predictions[item.key], item.references) for item in validation.items if item.answers]
        validated = {"squad": score_spans(pairs), "spanish": score_spans(pairs, "spanish")}
        negated = [
            (predictions[item.key], item.references) for item in validation.items if item.answers and item.negated
        ]
        record["validation"] = {
            "path": str(validation.path.resolve()),
            "sha256": validation.sha256,
            "questions": len(validation.items),
            "seen_in_training": repeats,
            **{rule: asdict(scores) for rule, scores in validated.items()},
            "negated": asdict(score_spans(negated)),
            "outcomes": {outcome.value: n for outcome, n in count_outcomes(pairs).items()},
        }
    _write(loaded, draft, record, predictions)
    return Finetuned(settings.out, record, losses, validated)


def _name_files(lessons_by_stage: Mapping[str, Sequence[Lessons]]) -> dict[str, Lessons]:
    """Name each file after its stage; `intermediate 1`, `intermediate 2`, ... if the stage has several."""
    return {
        stage if len(lessons) == 1 else f"{stage} {number}": one
        for stage, lessons in lessons_by_stage.items()
        for number, one in enumerate(lessons, start=1)
    }


def _answer(loaded: LoadedReader, file: SpanFile, settings: FinetuningSettings) -> dict[str, str]:
    """Read a span for each question that has an answer, by key; empty where the model finds none. Block by block."""
    reading = replace(loaded, model=loaded.model.eval())
    reader = TransformersSpanReader(
        reading, settings.answer_tokens, settings.window, settings.shared, may_be_empty=True
    )
    items = [item for item in file.items if item.answers]
    spans = {item.key: "" for item in items}
    items.sort(key=lambda item: -len(item.context))
    for first in range(0, len(items), 8 * reader.batch):
        block = items[first : first + 8 * reader.batch]
        for item, span in zip(block, reader.read([(item.question, item.context) for item in block]), strict=True):
            spans[item.key] = span.text if span is not None else ""
    return spans


def _write(loaded: LoadedReader, folder: Path, record: dict[str, Any], predictions: dict[str, str] | None) -> None:
    with quiet_transformers(), written_by_library():
        loaded.model.save_pretrained(folder, safe_serialization=True)
        loaded.tokenizer.save_pretrained(folder)
    (folder / RECORD).write_text(json.dumps(record, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    if predictions is not None:
        rows = (json.dumps({"id": key, "prediction": text}, ensure_ascii=False) for key, text in predictions.items())
        (folder / PREDICTIONS).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


@contextmanager
def _drafting(out: Path) -> Iterator[Path]:
    """Make a folder beside `out` that takes its place at the end of the block; gone where the block fails.

    Raises `SpecError` where `out` exists or cannot be written, before anything is learnt.
    """
    if out.exists():
        raise SpecError(f"{out}: exists already: choose another folder by --out, or move that one away")
    try:
        with whole_folder(out) as draft:
            yield draft
    except OSError as error:
        raise SpecError(f"{out}: cannot be written: {error}; choose another folder by --out") from None
