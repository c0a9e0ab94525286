"""One model of transformers, loaded: text to tokens, and tokens to the next token's scores.

It knows the model, its tokenizer and its chat template. Its callers decide when to ask it and what its scores mean.
"""

import importlib.metadata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from jinja2 import TemplateError
from transformers import AutoModelForCausalLM, AutoTokenizer

from medexam.errors import EngineError, InvalidRequestError, UnsupportedFeatureError
from medexam.library_logging import quiet_transformers
from medexam.model_calls import ChatMessage
from medexam.serve.chat_messages import TemplateRules, no_template, probe_template, template_digest
from medexam.serve.local_model.dtypes import pick_device, pick_dtype
from medexam.serve.local_model.template import may_reason
from medexam.serve.local_model.weights import Weights, smollm2_folder
from medexam.serve.logprobs.tokens import common_opening
from medexam.serve.request_settings import check_switches, other_settings, template_settings
from medexam.serve.thinking import append, is_open
from medexam.specs.model import ModelSpec

_LEAST_SHARED = 16
"""Tokens that rows must share for a pass of their own to pay."""


class LocalModel:
    """A causal language model. Not thread-safe: one thread at a time."""

    template: str | None
    """SHA-256 of the chat template; None for a base model, which has none."""
    rules: TemplateRules | None
    """What the chat template accepts; None if there is none."""

    def __init__(self, spec: ModelSpec, weights: Weights):
        self.label, self.content = weights.label, weights.content
        device = pick_device(spec.device)
        self.dtype_name = pick_dtype(spec.dtype, device)
        """Such as `bfloat16`."""
        self.device = torch.device(device)
        self.model, self.tokenizer = _load(weights, getattr(torch, self.dtype_name), self.device)
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
        self._template_settings = template_settings(spec)
        if self._template_settings and chats:
            self._check_settings(spec)
        self.rules = probe_template(self._render, TemplateError) if chats else None

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

    def left_padded(self, rows: Sequence[list[int]]) -> dict[str, Any]:
        """Pack rows for `generate`: the last column is every row's last token, and padding follows what they share."""
        shared, cache = self._read_shared(rows, min(map(len, rows)) - 1)
        pads = [max(map(len, rows)) - len(row) for row in rows]
        tensors = {
            "input_ids": [row[:shared] + [self.pad] * pad + row[shared:] for row, pad in zip(rows, pads, strict=True)],
            "attention_mask": [
                [1] * shared + [0] * pad + [1] * (len(row) - shared) for row, pad in zip(rows, pads, strict=True)
            ],
        }
        inputs: dict[str, Any] = {name: torch.tensor(values, device=self.device) for name, values in tensors.items()}
        return inputs if cache is None else {**inputs, "past_key_values": cache}

    def logits_at(self, rows: Sequence[list[int]], points: Sequence[tuple[int, int]]) -> Any:
        """Compute the scores of every next token at some points (row, column) of a batch, `[points, vocabulary]`.

        The model's own forward runs, since some models scale or cap their scores. Only the states of the points reach
        its head: scores over the vocabulary for all tokens would fill the memory.
        """
        shared, cache = self._read_shared(rows, min(column for _, column in points))
        # Padded on the right, where no token of a text looks, so that no mask is needed.
        width = max(map(len, rows))
        ids = torch.tensor([row[shared:] + [self.pad] * (width - len(row)) for row in rows], device=self.device)
        places = tuple(torch.tensor(index, device=self.device) for index in zip(*points, strict=True))
        head = self.model.get_output_embeddings()
        hook = head.register_forward_pre_hook(
            lambda _, states: (states[0][places[0], places[1] - shared][None], *states[1:])
        )
        try:
            with torch.inference_mode():
                return self.model(input_ids=ids, past_key_values=cache, use_cache=cache is not None).logits[0]
        finally:
            hook.remove()

    def _read_shared(self, rows: Sequence[list[int]], most: int) -> tuple[int, Any]:
        """Read what all rows begin with once, and count its tokens; the cache is as if each row had read it."""
        shared = min(len(common_opening(rows)), most)
        if len(rows) == 1 or shared < _LEAST_SHARED:
            return 0, None
        with torch.inference_mode():
            ids = torch.tensor([rows[0][:shared]], device=self.device)
            cache: Any = self.model(input_ids=ids, use_cache=True, logits_to_keep=1).past_key_values
            cache.batch_repeat_interleave(len(rows))
        return shared, cache

    def details(self) -> dict[str, Any]:
        """Describe device, type and versions, as recorded with a run."""
        return {
            "device": str(self.device),
            "dtype": self.dtype_name,
            "torch": importlib.metadata.version("torch"),
            "transformers": importlib.metadata.version("transformers"),
        }

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


def _load(weights: Weights, dtype: Any, device: Any) -> tuple[Any, Any]:
    """Load model and tokenizer; raises `EngineError` in one line, whatever a library says."""
    source = weights.source or smollm2_folder()
    place: dict[str, Any] = {"revision": weights.content} if weights.hub else {"local_files_only": True}
    try:
        with quiet_transformers():
            tokenizer: Any = AutoTokenizer.from_pretrained(source, trust_remote_code=False, **place)
            # safetensors only: the older format is a pickle, which runs code when it is read.
            model: Any = AutoModelForCausalLM.from_pretrained(
                source, dtype=dtype, use_safetensors=True, trust_remote_code=False, **place
            )
        return model.to(device).eval(), tokenizer
    except Exception as error:
        message = " ".join(str(error).split())[:300]
        commit = f" at commit {weights.content}" if weights.hub else ""
        raise EngineError(f"{source}{commit}: the model cannot be loaded: {message}") from error


def _end_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    end_ids = model.generation_config.eos_token_id
    ends: Iterable[int | None] = end_ids if isinstance(end_ids, list) else [end_ids]
    return frozenset(end for end in (*ends, tokenizer.eos_token_id) if end is not None)
