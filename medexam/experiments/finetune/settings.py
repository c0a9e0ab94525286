"""What a fine-tuning is told: files, model and numbers."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from medexam.retrievers.reading.windows import SHARED_TOKENS, WINDOW_TOKENS
from medexam.specs.base import Spec

PositiveInt = Annotated[int, Field(ge=1)]


class FinetuningSettings(Spec):
    """Which files, which model, which numbers.

    `window`, `shared`, `answer_tokens`, `epochs` and `seed` are those of Goenaga et al. (2023), "Explanatory argument
    extraction of correct answers in resident medical exams"; `batch` and `learning_rate` are the defaults of
    transformers' Trainer.
    """

    model: str | Path
    """A folder or a hub id of an encoder, with or without a question answering head."""
    train: Path
    """Questions with spans that `medexam.datasets.squad.read_squad` reads."""
    out: Path
    """The folder to write; it must not exist."""
    intermediate: Path | None = None
    """Questions with spans to learn from before those of `train` (STILT: Phang et al. 2018, arXiv 1811.01088), such as
    SQuAD-es or SQAC; None for none."""
    validation: Path | None = None
    """Questions with spans to score the result on; None for none."""
    revision: str | None = None
    """Revision of a hub model; None takes the newest."""
    epochs: PositiveInt = 20
    """Times that `train` is read."""
    intermediate_epochs: PositiveInt = 2
    """Times that `intermediate` is read; 2 is usual for SQuAD."""
    window: Annotated[int, Field(ge=32)] = WINDOW_TOKENS
    """Tokens of a window, question and context together."""
    shared: PositiveInt = SHARED_TOKENS
    """Tokens of the context that neighbouring windows share; at most a third of a window."""
    answer_tokens: PositiveInt = 512
    """Tokens of the longest answer, when the result is scored."""
    batch: PositiveInt = 8
    """Windows in one step."""
    learning_rate: Annotated[float, Field(gt=0)] = 5e-5
    """At the first step; it falls to 0 in a straight line."""
    seed: int = 42
    """Of the new head, the order of the windows and the dropout."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """`auto` is CUDA where there is one."""
