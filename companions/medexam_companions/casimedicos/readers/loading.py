"""Loads a reader: its weights, its tokenizer, and the certainty that its last layer was trained and not made up.

transformers fills what a checkpoint lacks with random numbers; here such a checkpoint is refused.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from medexam.errors import EngineError
from medexam.weights import Weights, find_encoder_weights, loading, pick_device

Task = Literal["span", "entailment"]


@dataclass(frozen=True)
class LoadedReader:
    """A model that is ready to read, in evaluation mode."""

    model: Any
    tokenizer: Any
    weights: Weights
    device: str
    batch: int
    """Texts in one forward pass."""


def load_reader(
    name: str | Path, task: Task, revision: str | None = None, device: str = "auto", seed: int | None = None
) -> LoadedReader:
    """Load the model of a folder or a hub id for `task`, in float32.

    With a `seed` it is to be fine-tuned: a head that it lacks is made of random numbers. Weights are safetensors, and
    no code that a model brings along is run. `HF_HUB_OFFLINE=1` keeps a hub id from being asked for. Raises
    `EngineError` if it cannot be loaded, has no fast tokenizer, or lacks the head for the task.
    """
    weights = find_encoder_weights(name, revision)
    with loading(weights, what="reader", extra="local"):
        from transformers import (
            AutoModelForQuestionAnswering,
            AutoModelForSequenceClassification,
            AutoTokenizer,
            set_seed,
        )

        if seed is not None:
            set_seed(seed)
        kind: Any = AutoModelForQuestionAnswering if task == "span" else AutoModelForSequenceClassification
        model, report = kind.from_pretrained(
            weights.source, **weights.origin, use_safetensors=True, output_loading_info=True, dtype="float32"
        )
        tokenizer: Any = AutoTokenizer.from_pretrained(weights.source, **weights.origin)
    lacking = sorted(map(str, [*report["missing_keys"], *report["mismatched_keys"]]))
    if seed is not None:
        lacking = [key for key in lacking if key.startswith(f"{model.base_model_prefix}.")]
    if lacking:
        raise EngineError(
            f"{weights.source}: its weights lack {', '.join(lacking[:3])}: name a whole model that was fine-tuned for "
            f"{task}; `medexam finetune --model {weights.source} --train FILE --out FOLDER` makes one that finds spans"
        )
    if not tokenizer.is_fast:
        raise EngineError(
            f"{weights.source}: its tokenizer does not give the positions of tokens in a text: "
            "save it with tokenizer.json"
        )
    if places := getattr(model.config, "max_position_embeddings", None):
        # Many a folder does not state it. The RoBERTa family counts its places behind the padding's.
        family = any(name in model.config.model_type for name in ("roberta", "camembert"))
        offset = (model.config.pad_token_id or 0) + 1 if family else 0
        tokenizer.model_max_length = min(tokenizer.model_max_length, places - offset)
    place = pick_device(device)
    return LoadedReader(model.to(place).eval(), tokenizer, weights, place, 128 if place.startswith("cuda") else 16)


def pad(tokenizer: Any, inputs: list[dict[str, list[int]]], device: str) -> Any:
    """Pad a batch into tensors `[n, longest]` on `device`; row i is input i."""
    return tokenizer.pad(inputs, return_tensors="pt").to(device)
