"""One stage of a fine-tuning, by transformers' own Trainer: no checkpoints, no reports of its own, nothing printed."""

from collections.abc import Sequence
from functools import partial
from math import isfinite
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from medexam.errors import EngineError
from medexam_companions.casimedicos.finetuning.settings import FinetuningSettings
from medexam_companions.casimedicos.finetuning.windows import Lesson, Lessons
from medexam_companions.casimedicos.readers.loading import LoadedReader

_LABELS = ("start_positions", "end_positions")


class FinetuningObserver(Protocol):
    """Watches a fine-tuning, such as a progress bar."""

    def warns(self, line: str) -> None:
        """Take notice of something that a reader of the result should know."""

    def stage_starts(self, name: str, lessons: Lessons, steps: int) -> None:
        """Take notice that a stage, `intermediate` or `train`, begins; it takes `steps` steps."""

    def step_ends(self, step: int, epoch: float, loss: float | None) -> None:
        """Take notice that `step` steps of the stage are done. `loss` is the mean since the last report, None if there
        is no new one.
        """


def teach(
    loaded: LoadedReader,
    name: str,
    lessons: Lessons,
    epochs: int,
    settings: FinetuningSettings,
    observer: FinetuningObserver,
) -> list[tuple[int, float]]:
    """Train the loaded model in place; return step and mean loss since the one before, about a hundred times.

    `name` is the stage's, for `observer`. Raises `EngineError` where the loss is no number.
    """
    from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

    steps = epochs * -(-len(lessons.windows) // settings.batch)
    losses: list[tuple[int, float]] = []

    class Watching(TrainerCallback):
        """Passes on what the Trainer tells."""

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
            observer.step_ends(state.global_step, state.epoch or 0.0, None)

        def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
            logs = kwargs.get("logs") or {}
            if "loss" in logs:
                losses.append((state.global_step, float(logs["loss"])))
                observer.step_ends(state.global_step, state.epoch or 0.0, float(logs["loss"]))

    observer.stage_starts(name, lessons, steps)
    with TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            num_train_epochs=epochs,
            per_device_train_batch_size=settings.batch,
            learning_rate=settings.learning_rate,
            seed=settings.seed,
            data_seed=settings.seed,
            use_cpu=loaded.device == "cpu",
            dataloader_pin_memory=loaded.device != "cpu",
            # The Trainer would report the last sound loss instead of one that is no number.
            logging_nan_inf_filter=False,
            logging_steps=max(1, steps // 100),
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            remove_unused_columns=False,
        )
        trainer = Trainer(
            model=loaded.model,
            args=arguments,
            train_dataset=list(lessons.windows),
            data_collator=partial(_collate, loaded.tokenizer),
            callbacks=[Watching()],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    if any(not isfinite(loss) for _, loss in losses):
        raise EngineError(f"{lessons.file.path}: the loss is not a number: lower --learning-rate")
    return losses


def _collate(tokenizer: Any, batch: Sequence[Lesson]) -> Any:
    """Pad lessons into tensors `[n, longest]`, and `[n]` for each label; row i is lesson i."""
    import torch

    inputs = [{key: value for key, value in lesson.items() if key not in _LABELS} for lesson in batch]
    tensors = tokenizer.pad(inputs, return_tensors="pt")
    length = tensors["input_ids"].shape[1]
    pads_left = tokenizer.padding_side == "left"
    shifts = [length - len(lesson_inputs["input_ids"]) if pads_left else 0 for lesson_inputs in inputs]
    for label in _LABELS:
        tensors[label] = torch.tensor([lesson[label] + shift for lesson, shift in zip(batch, shifts, strict=True)])
    return tensors
