"""Loads a reader: its weights, its tokenizer, and the certainty that its last layer was trained and not made up.

transformers fills what a checkpoint lacks with random numbers and goes on; here that is refused.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from medexam.errors import EngineError
from medexam.retrievers.encoder_weights import EncoderWeights, commit_of, find_weights, loading, pick_device

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
    asked for. Raises `EngineError` where it cannot be loaded, has no fast tokenizer, or lacks the head for the task.
    """
    weights = find_weights(name, revision)
    with loading(weights, what="reader", packages=("transformers", "torch"), extra="local"):
        from transformers import AutoModelForQuestionAnswering, AutoModelForSequenceClassification, AutoTokenizer

        kind: Any = AutoModelForQuestionAnswering if task == "span" else AutoModelForSequenceClassification
        where = {
            "revision": weights.revision if weights.hub else None,
            "local_files_only": not weights.hub,
            "trust_remote_code": False,
        }
        model, report = kind.from_pretrained(
            weights.source, **where, use_safetensors=True, output_loading_info=True, dtype="float32"
        )
        tokenizer: Any = AutoTokenizer.from_pretrained(weights.source, **where)
    if report["missing_keys"] or report["mismatched_keys"]:
        lacking = ", ".join(sorted(map(str, [*report["missing_keys"], *report["mismatched_keys"]]))[:3])
        raise EngineError(f"{weights.source}: its weights lack {lacking}: {_NEEDS[task].format(source=weights.source)}")
    if not tokenizer.is_fast:
        raise EngineError(
            f"{weights.source}: its tokenizer does not say where tokens stand in a text: save it with tokenizer.json"
        )
    fit_length(model, tokenizer)
    if weights.hub:
        weights = replace(weights, revision=commit_of(model) or weights.revision)
    place = pick_device(device)
    batch = BATCH.get(place.partition(":")[0], BATCH["cpu"])
    return LoadedReader(model.to(place).eval(), tokenizer, weights, place, batch)


def fit_length(model: Any, tokenizer: Any) -> None:
    """Set the tokenizer's limit to what the model has places for; many a folder does not state it."""
    places = getattr(model.config, "max_position_embeddings", None)
    if places:
        # The RoBERTa family counts its places behind the padding's.
        family = any(name in model.config.model_type for name in ("roberta", "camembert"))
        offset = (model.config.pad_token_id or 0) + 1 if family else 0
        tokenizer.model_max_length = min(tokenizer.model_max_length, places - offset)


def pad(tokenizer: Any, inputs: list[dict[str, list[int]]], device: str) -> Any:
    """A batch of tensors `[n, longest]` on `device`; row i is input i."""
    return tokenizer.pad(inputs, return_tensors="pt").to(device)
