"""One model of transformers, loaded: text to tokens, and tokens to the next token's scores or to further tokens.

It knows the model, its tokenizer and its chat template. Its callers decide when to ask it and what its scores mean.
"""

import hashlib
import importlib.metadata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from jinja2 import TemplateError
from transformers import AutoModelForCausalLM, AutoTokenizer

from medexam.errors import InvalidRequestError, UnsupportedFeatureError
from medexam.model_calls import ChatMessage
from medexam.serve.chat_messages import CLOSED, TemplateRules, append, is_open, no_template, probe_template
from medexam.serve.local_model.template import may_reason
from medexam.serve.local_model.weights import find_weights, pick_dtype, smollm2_folder
from medexam.serve.request_settings import list_switches, template_settings
from medexam.specs.model import ModelSpec
from medexam.weights import loading, pick_device


class LocalModel:
    """A causal language model. Not thread-safe: one thread at a time."""

    template: str | None = None
    """SHA-256 of the chat template; None for a base model, which has none."""
    rules: TemplateRules | None = None
    """What the chat template accepts; None if there is none."""

    def __init__(self, spec: ModelSpec):
        weights = find_weights(spec)
        self.label, self.content, self.min_p = weights.label, weights.revision, spec.min_p
        device = pick_device(spec.device)
        self.dtype_name, self.device = pick_dtype(spec.dtype, device), torch.device(device)
        weights = weights if weights.source else replace(weights, source=str(smollm2_folder()))
        with loading(weights, "model", "local"):
            self.tokenizer: Any = AutoTokenizer.from_pretrained(weights.source, **weights.origin)
            # safetensors only: the older format is a pickle, which runs code when it is read.
            model: Any = AutoModelForCausalLM.from_pretrained(
                weights.source, dtype=getattr(torch, self.dtype_name), use_safetensors=True, **weights.origin
            )
            self.model: Any = model.to(self.device).eval()
        self.max_context: int | None = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        end_ids = model.generation_config.eos_token_id
        ends = [*(end_ids if isinstance(end_ids, list) else [end_ids]), self.tokenizer.eos_token_id]
        self.ends = frozenset(end for end in ends if end is not None)
        pad = self.tokenizer.pad_token_id
        self.pad: int = pad if pad is not None else min(self.ends, default=0)
        # A model's own defaults (temperature, repetition penalty) must not change what the request asks for.
        model.generation_config = type(model.generation_config)()
        self._template_settings = template_settings(spec)
        if isinstance(template := self.tokenizer.chat_template, str):
            self.template = hashlib.sha256(template.encode()).hexdigest()
            if self._template_settings:
                self._check_settings(spec)
            self.rules = probe_template(self._render, TemplateError)

    def render(self, messages: Sequence[ChatMessage], prefill: str, *, choosing: bool = False) -> str:
        """Render the whole prompt as text; `choosing`: what follows is chosen or read, so no thought is left open."""
        if self.rules is None:
            raise UnsupportedFeatureError(no_template(self.label), feature="messages")
        try:
            return append(self._render(self.rules.fit(messages)), prefill, choosing=choosing)
        except TemplateError as error:
            raise InvalidRequestError(f"{self.label}: its chat template refuses the request: {error}") from error

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

    def generate(self, rows: Sequence[list[int]], most: int, steps: list[Any]) -> list[list[int]]:
        """Write at most `most` tokens behind each row, the likeliest after `steps` changed their scores, until an end
        token.
        """
        width = max(map(len, rows))
        with torch.inference_mode():
            output = self.model.generate(
                input_ids=torch.tensor([[self.pad] * (width - len(row)) + row for row in rows], device=self.device),
                attention_mask=torch.tensor(
                    [[0] * (width - len(row)) + [1] * len(row) for row in rows], device=self.device
                ),
                max_new_tokens=most,
                do_sample=False,
                eos_token_id=sorted(self.ends) or None,
                pad_token_id=self.pad,
                logits_processor=steps,
            )
        tokens: list[list[int]] = output[:, width:].tolist()
        return tokens

    def logits_at(self, rows: Sequence[list[int]], points: Sequence[tuple[int, int]]) -> Any:
        """Compute the scores of every next token at some points (row, column) of a batch, `[points, vocabulary]`.

        The model's own forward runs, since some models scale or cap their scores. Only the states of the points reach
        its head: scores over the vocabulary for all tokens would fill the memory.
        """
        # Padded on the right, where no token of a text looks, so that no mask is needed.
        width = max(map(len, rows))
        ids = torch.tensor([row + [self.pad] * (width - len(row)) for row in rows], device=self.device)
        places = tuple(torch.tensor(index, device=self.device) for index in zip(*points, strict=True))
        head = self.model.get_output_embeddings()
        hook = head.register_forward_pre_hook(lambda _, states: (states[0][places][None], *states[1:]))
        try:
            with torch.inference_mode():
                return self.model(input_ids=ids, use_cache=False).logits[0]
        finally:
            hook.remove()

    def details(self) -> dict[str, Any]:
        """Describe device, type, versions and what becomes of messages, as recorded with a run."""
        opens = self.rules is not None and is_open(self._render([{"role": "user", "content": "Hello"}]))
        return {
            "device": str(self.device),
            "dtype": self.dtype_name,
            "torch": importlib.metadata.version("torch"),
            "transformers": importlib.metadata.version("transformers"),
            **({} if self.rules is None else self.rules.details),
            **({"open_thinking": CLOSED} if opens else {}),
        }

    def _check_settings(self, spec: ModelSpec) -> None:
        turns = [{"role": "user", "content": "Hello"}]
        reasons = may_reason(self.tokenizer.chat_template)
        for settings, turned, error in list_switches(spec, self.label, may_reason=reasons):
            if self._render(turns, settings) == self._render(turns, turned):
                raise error

    def _render(self, messages: list[ChatMessage], settings: Mapping[str, Any] | None = None) -> str:
        settings = self._template_settings if settings is None else settings
        text: str = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **settings)
        return text
