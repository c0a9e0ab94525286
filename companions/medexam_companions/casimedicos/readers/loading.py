"""Loads a reader: its weights, its tokenizer, and the certainty that its last layer was trained and not made up.

transformers fills what a checkpoint lacks with random numbers; here such a checkpoint is refused.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from medexam.encoder_weights import EncoderWeights, find_encoder_weights, loading, pick_encoder_device
from medexam.errors import EngineError

Task = Literal["span", "entailment"]

BATCH = {"cpu": 16, "cuda": 128}
"""Texts in one forward pass, by the kind of device."""
_NEEDS: dict[Task, str] = {
    "span": (
        "it is an encoder without a question answering head: fine-tune it with `medexam finetune --model {source} "
        "--train FILE --out FOLDER` and name that folder"
    ),
    "entailment": (
        "it is an encoder without a classification head: name a model that was fine-tuned for natural language "
        "inference, such as MoritzLaurer/mDeBERTa-v3-base-mnli-xnli"
    ),
}


@dataclass(frozen=True)
class LoadedReader:
    """A model that is ready to read, in evaluation mode."""

    model: Any
    tokenizer: Any
    weights: EncoderWeights
    device: str
    batch: int
    """Texts in one forward pass."""


def load_reader(name: str | Path, task: Task, revision: str | None = None, device: str = "auto") -> LoadedReader:
    """Load the model of a folder or a hub id for `task`, in float32.

    Weights are safetensors, and no code that a model brings along is run. `HF_HUB_OFFLINE=1` keeps a hub id from being
    asked for. Raises `EngineError` if it cannot be loaded, has no fast tokenizer, or lacks the head for the task.
    """
    loaded, lacking = _load(name, task, revision, device)
    if lacking:
        source = loaded.weights.source
        raise EngineError(f"{source}: its weights lack {', '.join(lacking[:3])}: {_NEEDS[task].format(source=source)}")
    return loaded


def load_trainable(name: str | Path, revision: str | None, device: str, seed: int) -> LoadedReader:
    """Load an encoder to be fine-tuned on spans; a head that it lacks is made of random numbers from `seed`.

    Raises `EngineError` if it cannot be loaded, has no fast tokenizer, or lacks more than the head.
    """
    loaded, lacking = _load(name, "span", revision, device, seed)
    body = [key for key in lacking if key.startswith(f"{loaded.model.base_model_prefix}.")]
    if body:
        raise EngineError(
            f"{loaded.weights.source}: its weights lack {', '.join(body[:3])}: they are not those of the encoder that "
            "its config.json describes; copy the whole model"
        )
    return loaded


def _load(
    name: str | Path, task: Task, revision: str | None, device: str, seed: int | None = None
) -> tuple[LoadedReader, list[str]]:
    """Load the model; return it and the names of the parameters that its weights lack and that are random now."""
    weights = find_encoder_weights(name, revision)
    with loading(weights, what="reader", packages=("transformers", "torch"), extra="local"):
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
    if not tokenizer.is_fast:
        raise EngineError(
            f"{weights.source}: its tokenizer does not give the positions of tokens in a text: "
            "save it with tokenizer.json"
        )
    fit_length(model, tokenizer)
    place = pick_encoder_device(device)
    batch = BATCH.get(place.partition(":")[0], BATCH["cpu"])
    lacking = sorted(map(str, [*report["missing_keys"], *report["mismatched_keys"]]))
    return LoadedReader(model.to(place).eval(), tokenizer, weights, place, batch), lacking


def fit_length(model: Any, tokenizer: Any) -> None:
    """Set the tokenizer's limit to what the model has places for; many a folder does not state it."""
    places = getattr(model.config, "max_position_embeddings", None)
    if places:
        # The RoBERTa family counts its places behind the padding's.
        family = any(name in model.config.model_type for name in ("roberta", "camembert"))
        offset = (model.config.pad_token_id or 0) + 1 if family else 0
        tokenizer.model_max_length = min(tokenizer.model_max_length, places - offset)


def pad(tokenizer: Any, inputs: list[dict[str, list[int]]], device: str) -> Any:
    """Pad a batch into tensors `[n, longest]` on `device`; row i is input i."""
    return tokenizer.pad(inputs, return_tensors="pt").to(device)
