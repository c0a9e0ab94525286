"""One model of transformers, loaded: text to tokens, and tokens to the next token's scores.

It knows the model, its tokenizer and its chat template. Its callers decide when to ask it and what its scores mean.
"""

import contextlib
import importlib.metadata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from jinja2 import TemplateError
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache
from transformers.cache_utils import DynamicLayer

from medexam.errors import EngineError, InvalidRequestError, UnsupportedFeatureError
from medexam.library_logging import quiet_transformers
from medexam.model_calls import ChatMessage
from medexam.serve.chat_messages import TemplateRules, no_template, probe_template, template_digest
from medexam.serve.local_model.dtypes import explain_dtype, pick_device, pick_dtype
from medexam.serve.local_model.prefixes import Layers, PrefixCache
from medexam.serve.local_model.template import may_reason
from medexam.serve.local_model.weights import Weights
from medexam.serve.request_settings import check_switches, other_settings, template_settings
from medexam.serve.thinking import append, is_open
from medexam.specs.model import ModelSpec


class LocalModel:
    """A causal language model. Not thread-safe: one thread at a time."""

    template: str | None
    """SHA-256 of the chat template; None for a base model, which has none."""
    rules: TemplateRules | None
    """What the chat template accepts; None if there is none."""

    def __init__(self, spec: ModelSpec, weights: Weights, *, share_prefixes: bool = True):
        self.label, self.content = weights.label, weights.content
        with _load_errors(weights):
            device = pick_device(spec.device)
            self.device, self.dtype = (
                torch.device(device),
                getattr(torch, pick_dtype(spec.dtype, device, weights.width)),
            )
            self._dtype_reason = explain_dtype(spec.dtype, device, weights.width)
            self.model, self.tokenizer = _load(weights, self.dtype, self.device)
        config = self.model.config.get_text_config()
        self.max_context: int | None = getattr(config, "max_position_embeddings", None)
        self.ends = _end_tokens(self.model, self.tokenizer)
        pad = self.tokenizer.pad_token_id
        self.pad: int = pad if pad is not None else min(self.ends, default=0)
        # A model's own defaults (temperature, repetition penalty) must not change what the request asks for.
        self.model.generation_config = type(self.model.generation_config)()
        template = self.tokenizer.chat_template
        chats = isinstance(template, str)
        self.template = template_digest(template) if chats else None
        self.min_p = spec.min_p
        self.thinking_budget = spec.thinking if isinstance(spec.thinking, int) else None
        """The most tokens that a reply may think; None for no limit."""
        self._template_settings = template_settings(spec)
        if self._template_settings and chats:
            self._check_settings(spec)
        self.rules = probe_template(self._render, TemplateError) if chats else None
        # Only keys and values that grow token by token can be cut and shared; sliding and linear attention keep others,
        # and their states after a longer prefix say nothing of a shorter one.
        self.full_attention = all(type(layer) is DynamicLayer for layer in DynamicCache(config=config).layers)
        """Whether every token attends to all before it, in every layer."""
        # It is given the model alone: a method of this object would keep it alive for ever.
        compute = partial(_compute_prefix, self.model, self.device)
        self._prefixes = PrefixCache(compute) if share_prefixes and self.full_attention else None

    def render(self, messages: Sequence[ChatMessage], prefill: str, *, choosing: bool = False) -> str:
        """Render the whole prompt as text; `choosing`: something is chosen or read behind it, so no thought is left
        open.
        """
        if self.rules is None:
            raise UnsupportedFeatureError(no_template(self.label), feature="messages")
        try:
            return append(self._render(self.rules.fit(messages)), prefill, choosing=choosing)
        except TemplateError as error:
            raise InvalidRequestError(f"{self.label}: its chat template refuses the request: {error}") from error

    @property
    def opens_thinking(self) -> bool:
        """Whether its chat template leaves a block of thinking open, which the reply fills."""
        return self.rules is not None and is_open(self._render([{"role": "user", "content": "Hello"}]))

    def encode(self, texts: Sequence[str], *, special: bool = False) -> list[list[int]]:
        """Tokenise each text; `special` adds the tokens that open every text, which a template writes itself."""
        encoded: list[list[int]] = self.tokenizer(list(texts), add_special_tokens=special)["input_ids"]
        return encoded

    def decode(self, context: Sequence[int], tokens: Sequence[int]) -> str:
        """Decode tokens that follow others: some tokenizers drop a leading space unless something precedes."""
        tail = list(context[-4:])
        options = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
        head: str = self.tokenizer.decode(tail, **options)
        full_text: str = self.tokenizer.decode([*tail, *tokens], **options)
        return full_text[len(head) :]

    def next_logits(self, rows: Sequence[list[int]]) -> Any:
        """Compute the scores of every next token in 32 bits, `[rows, vocabulary]`."""
        return self._read(self.batch(rows))

    def read(self, rows: Sequence[list[int]]) -> tuple[Any, Any, Any]:
        """Read rows and return what a batch keeps of them: their cache, their mask `[rows, columns]`, and
        `next_logits`.
        """
        inputs = self.batch(rows)
        cache = inputs.setdefault("past_key_values", DynamicCache())
        return cache, inputs["attention_mask"], self._read(inputs)

    def _read(self, inputs: dict[str, Any]) -> Any:
        with torch.inference_mode():
            skipped = inputs["past_key_values"].get_seq_length() if "past_key_values" in inputs else 0
            # Without positions of its own a row would count its padding as text.
            positions = (inputs["attention_mask"].cumsum(1) - 1).clamp(min=0)
            inputs["input_ids"] = inputs["input_ids"][:, skipped:]
            output = self.model(
                **inputs, position_ids=positions[:, skipped:], logits_to_keep=1, use_cache="past_key_values" in inputs
            )
            return output.logits[:, -1].float()

    def batch(self, rows: Sequence[list[int]]) -> dict[str, Any]:
        """Pack rows as `input_ids`, `attention_mask` and, if they share an opening, its `past_key_values`.

        Rows are padded on the left, so that the last column is every row's last token; with a shared opening the
        padding is between it and the rest.
        """
        shared, layers = self._prefixes.share(rows) if self._prefixes else (0, [])
        width = max(len(row) for row in rows)
        ids = [row[:shared] + [self.pad] * (width - len(row)) + row[shared:] for row in rows]
        mask = [[1] * shared + [0] * (width - len(row)) + [1] * (len(row) - shared) for row in rows]
        return self._inputs(ids, mask, layers)

    def open_batch(self, rows: Sequence[list[int]], openings: Sequence[list[int]]) -> tuple[dict[str, Any], int]:
        """Pad rows on the right as `input_ids` and `attention_mask`, and count how many leading tokens they share.

        Only what `openings`, the beginnings of the rows, have in common is shared; its tokens are left out of
        `input_ids` and stand in `past_key_values`.
        """
        shared, layers = self._prefixes.share(openings) if self._prefixes else (0, [])
        width = max(len(row) for row in rows)
        ids = [row[shared:] + [self.pad] * (width - len(row)) for row in rows]
        mask = [[1] * len(row) + [0] * (width - len(row)) for row in rows]
        return self._inputs(ids, mask, layers), shared

    def logits_at(self, inputs: dict[str, Any], places: Sequence[tuple[int, int]]) -> Any:
        """Compute the scores of every next token at some places (row, column) of a batch, `[places, vocabulary]`.

        The model's own forward runs, since some models scale or cap their scores. Only the states of the places reach
        its head: scores over the vocabulary for all tokens would fill the memory.
        """
        rows, columns = (torch.tensor(index, device=self.device) for index in zip(*places, strict=True))
        head = self.model.get_output_embeddings()
        hook = head.register_forward_pre_hook(lambda _, states: (states[0][rows, columns][None], *states[1:]))
        try:
            with torch.inference_mode():
                return self.model(**inputs, use_cache="past_key_values" in inputs).logits[0]
        finally:
            hook.remove()

    @property
    def dtype_name(self) -> str:
        """Such as `bfloat16`."""
        return str(self.dtype).removeprefix("torch.")

    def details(self) -> dict[str, Any]:
        """Describe device, type and versions, as recorded with a run."""
        return {
            "device": str(self.device),
            "dtype": self.dtype_name,
            **({} if self._dtype_reason is None else {"dtype_reason": self._dtype_reason}),
            "torch": importlib.metadata.version("torch"),
            "transformers": importlib.metadata.version("transformers"),
        }

    def _inputs(self, ids: list[list[int]], mask: list[list[int]], layers: Layers) -> dict[str, Any]:
        tensors = {"input_ids": ids, "attention_mask": mask}
        inputs: dict[str, Any] = {name: torch.tensor(rows, device=self.device) for name, rows in tensors.items()}
        if layers:
            # Expanded, not repeated: all rows read the same keys and values, and nothing is copied.
            size = (len(ids), -1, -1, -1)
            inputs["past_key_values"] = DynamicCache(
                [(keys.expand(size), values.expand(size)) for keys, values in layers]
            )
        return inputs

    def _check_settings(self, spec: ModelSpec) -> None:
        """Raise `EngineError` for a setting that the chat template has no words for."""
        changes = {}
        for name, other_key in (("reasoning_effort", "thinking"), ("thinking", "reasoning_effort")):
            settings = template_settings(spec.model_copy(update={other_key: None}))
            renderings = [
                self._render([{"role": "user", "content": "Hello"}], variant)
                for variant in (settings, other_settings(settings))
            ]
            changes[name] = renderings[0] != renderings[1]
        check_switches(spec, self.label, changes=changes, may_reason=may_reason(self.tokenizer.chat_template))

    def _render(self, messages: list[ChatMessage], settings: Mapping[str, Any] | None = None) -> str:
        text: str = self.tokenizer.apply_chat_template(
            messages,
            tokenize=False,
            add_generation_prompt=True,
            **(self._template_settings if settings is None else settings),
        )
        return text


def _compute_prefix(model: Any, device: Any, tokens: list[int]) -> Layers:
    cache: Any = DynamicCache()
    with torch.inference_mode():
        model(torch.tensor([tokens], device=device), past_key_values=cache, logits_to_keep=1)
    return [(layer.keys, layer.values) for layer in cache.layers]


def is_out_of_memory(error: Exception) -> bool:
    """Return whether the device has too little memory for what it was asked."""
    return isinstance(error, torch.OutOfMemoryError)


def _load(weights: Weights, dtype: Any, device: Any) -> tuple[Any, Any]:
    source = weights.prepare()
    options: dict[str, Any] = {"trust_remote_code": False}
    if weights.hub:
        options["revision"] = weights.content
    else:
        options["local_files_only"] = True
    with quiet_transformers():
        tokenizer: Any = AutoTokenizer.from_pretrained(source, **options)
        # safetensors only: the older format is a pickle, which runs code when it is read.
        model: Any = AutoModelForCausalLM.from_pretrained(source, dtype=dtype, use_safetensors=True, **options)
    return model.to(device).eval(), tokenizer


@contextlib.contextmanager
def _load_errors(weights: Weights) -> Iterator[None]:
    """Turn any error of a library that cannot load the weights into one line."""
    try:
        yield
    except EngineError:
        raise
    except Exception as error:
        message = " ".join(str(error).split())[:300]
        commit = f" at commit {weights.content}" if weights.hub else ""
        raise EngineError(
            f"{weights.source or weights.label}{commit}: the model cannot be loaded: {message}"
        ) from error


def _end_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    end_ids = model.generation_config.eos_token_id
    ends: Iterable[int | None] = end_ids if isinstance(end_ids, list) else [end_ids]
    return frozenset(end for end in (*ends, tokenizer.eos_token_id) if end is not None)
