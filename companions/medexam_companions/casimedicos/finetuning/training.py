"""Learns one stage by transformers' own Trainer, scores it, and leaves its folder whole or not at all."""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from math import fsum, isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from medexam.errors import DatasetError, EngineError, SpecError
from medexam.experiments import describe_environment
from medexam.files import whole_folder
from medexam.measures import score_span
from medexam.process import quiet_transformers
from medexam_companions.casimedicos.benchmark import count_outcomes
from medexam_companions.casimedicos.finetuning.cells import RECORD, Stage
from medexam_companions.casimedicos.finetuning.lessons import Lesson, make_lessons, read_span_file
from medexam_companions.casimedicos.readers.loading import LoadedReader, load_reader
from medexam_companions.casimedicos.readers.spans import SpanReader
from medexam_companions.casimedicos.squad import SpanItem

PREDICTIONS = "validation_predictions.jsonl"
SHOWN = 5
"""Questions that a line names."""
_LABELS = ("start_positions", "end_positions")


def learn(stage: Stage, say: Callable[[str], None]) -> None:
    """Learn a stage and write the model to `stage.out`, with its record and what it predicts of the validation.

    The same spec, files and machine give the same weights. `say` is given what a reader of the result should know.
    Raises `SpecError` where the folder exists, `OSError` where it cannot be written, `DatasetError` where a file cannot
    be read or holds nothing to learn from, and `EngineError` where the model cannot be loaded or its loss is no number.
    """
    if stage.out.exists():
        raise SpecError(f"{stage.out}: exists already: choose another folder by --out, or move that one away")
    with whole_folder(stage.out) as draft:
        _learn(stage, say, draft)


def _learn(stage: Stage, say: Callable[[str], None], draft: Path) -> None:
    spec = stage.spec
    read = partial(read_span_file, variant=stage.variant, unstructured=stage.is_last and spec.unstructured)
    files = {path: read(path) for path in stage.train}
    validation = None if stage.validation is None else read(stage.validation)
    if validation and not any(item.answers for item in validation):
        raise DatasetError(f"{stage.validation}: none of its questions has an answer to score against")
    loaded = load_reader(stage.model, "span", None, spec.device, spec.seed)
    windows: list[Lesson] = []
    data = {}
    for path, items in files.items():
        try:
            lessons, omissions = make_lessons(items, loaded.tokenizer, spec.window, spec.shared)
        except DatasetError as error:
            raise DatasetError(f"{path}: {error}") from None
        for reason, n in Counter(omissions.values()).items():
            keys = [key for key, cause in omissions.items() if cause == reason]
            examples = f"{', '.join(keys[:SHOWN])}{' ...' if n > SHOWN else ''}"
            say(f"{path}: {n:,} of {len(items):,} questions are left out ({examples}): {reason}")
        windows += lessons
        data[str(path)] = {
            "questions": len(items),
            "unanswerable": sum(not item.answers for item in items),
            "windows": len(lessons),
            "left_out": omissions,
        }
    start = time.monotonic()
    losses = _train(loaded, windows, stage)
    record: dict[str, Any] = {
        "digest": stage.digest,
        "settings": spec.model_dump(mode="json") | {"variant": stage.variant},
        "base": {"name": loaded.weights.label, "revision": loaded.weights.revision},
        "data": data,
        "device": loaded.device,
        "seconds": round(time.monotonic() - start, 1),
        "losses": losses,
        "environment": describe_environment(),
    }
    if validation is not None:
        trained_on = {(item.question, item.context) for items in files.values() for item in items}
        repeats = [item.key for item in validation if (item.question, item.context) in trained_on]
        if repeats:
            say(
                f"{stage.validation}: {len(repeats):,} of {len(validation):,} questions are in the training data "
                "too, so the score counts what was memorised: leave them out to see what the model can do"
            )
        record["validation"] = _score(loaded, validation, stage, draft) | {"seen_in_training": repeats}
    if spec.keep_weights or not stage.is_last:
        with quiet_transformers():
            loaded.model.save_pretrained(draft, safe_serialization=True)
            loaded.tokenizer.save_pretrained(draft)
    (draft / RECORD).write_text(json.dumps(record, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _train(loaded: LoadedReader, windows: Sequence[Lesson], stage: Stage) -> list[tuple[int, float]]:
    """Train the loaded model in place; return step and mean loss since the one before, about a hundred times."""
    from transformers import PrinterCallback, ProgressCallback, Trainer, TrainingArguments

    bar: Any = ProgressCallback()
    # It would print each loss on standard output.
    bar.on_log = lambda *_, **__: None
    spec = stage.spec
    with TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            num_train_epochs=spec.epochs,
            per_device_train_batch_size=spec.batch,
            learning_rate=spec.learning_rate,
            seed=spec.seed,
            data_seed=spec.seed,
            use_cpu=loaded.device == "cpu",
            dataloader_pin_memory=loaded.device != "cpu",
            # The Trainer would report the last sound loss instead of one that is no number.
            logging_nan_inf_filter=False,
            logging_steps=max(1, spec.epochs * -(-len(windows) // spec.batch) // 100),
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            remove_unused_columns=False,
        )
        trainer = Trainer(
            model=loaded.model,
            args=arguments,
            train_dataset=list(windows),
            data_collator=partial(_collate, loaded.tokenizer),
            callbacks=[bar] if sys.stderr.isatty() else [],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    losses = [(int(entry["step"]), float(entry["loss"])) for entry in trainer.state.log_history if "loss" in entry]
    if not all(isfinite(loss) for _, loss in losses):
        raise EngineError(f"{stage.train[0]}: the loss is not a number: lower learning_rate")
    return losses


def _collate(tokenizer: Any, batch: Sequence[Lesson]) -> Any:
    """Pad lessons into tensors `[n, longest]`, and `[n]` for each label; row i is lesson i."""
    import torch

    inputs = [{key: value for key, value in lesson.items() if key not in _LABELS} for lesson in batch]
    tensors = tokenizer.pad(inputs, return_tensors="pt")
    length = tensors["input_ids"].shape[1]
    factor = {"left": 1, "right": 0}[tokenizer.padding_side]
    shifts = [factor * (length - len(lesson_inputs["input_ids"])) for lesson_inputs in inputs]
    for label in _LABELS:
        tensors[label] = torch.tensor([lesson[label] + shift for lesson, shift in zip(batch, shifts, strict=True)])
    return tensors


def _score(loaded: LoadedReader, validation: Sequence[SpanItem], stage: Stage, draft: Path) -> dict[str, Any]:
    """Read a span for each question that has an answer, write them, and score them; empty where none is found."""
    spec = stage.spec
    loaded.model.eval()
    reader = SpanReader(loaded, spec.answer_tokens, spec.window, spec.shared, may_be_empty=True)
    items = [item for item in validation if item.answers]
    spans = reader.read([(item.question, item.context) for item in items])
    texts = [span.text if span is not None else "" for span in spans]
    rows = ({"id": item.key, "prediction": text} for item, text in zip(items, texts, strict=True))
    lines = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    (draft / PREDICTIONS).write_text(lines, encoding="utf-8")
    pairs = [(text, item.references) for item, text in zip(items, texts, strict=True)]
    return {
        "squad": mean_scores(pairs),
        "spanish": mean_scores(pairs, "spanish"),
        "outcomes": count_outcomes(pairs),
    }


def mean_scores(
    pairs: Sequence[tuple[str, Sequence[str]]], normalisation: Literal["squad", "spanish"] = "squad"
) -> dict[str, float | None]:
    """Average the scores, in percent, over pairs of a prediction and its references; None of no pair.

    An empty prediction counts as any other: 0, unless a reference is empty after normalising.
    """
    scores = [score_span(prediction, references, normalisation)._asdict() for prediction, references in pairs]
    names = ("exact_match", "f1", "precision", "recall")
    means = {name: 100 * fsum(each[name] for each in scores) / len(scores) if scores else None for name in names}
    return {"n": len(scores), **means}
