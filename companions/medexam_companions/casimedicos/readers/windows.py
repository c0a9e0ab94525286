"""Question and context as a model reads them together: in windows of tokens that overlap where a context is long."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

WINDOW_TOKENS = 384
"""Tokens of a window, the question among them (Goenaga et al. 2023, and SQuAD's own baselines)."""
SHARED_TOKENS = 128
"""Tokens of the context that neighbouring windows share."""


@dataclass(frozen=True, slots=True)
class Window:
    """A part of one context behind its question."""

    pair: int
    """The place of its question and context in what was cut, from 0."""
    inputs: dict[str, list[int]]
    """What the model takes, such as `input_ids`: one number a token, without padding."""
    offsets: tuple[tuple[int, int] | None, ...]
    """First character of each token in the context and the one after its last; None for every other token."""
    whole_text: int
    """The place of the token that means the whole text: the tokenizer's own, or the first."""


def cut_windows(
    tokenizer: Any, pairs: Sequence[tuple[str, str]], window: int = WINDOW_TOKENS, shared: int = SHARED_TOKENS
) -> list[Window]:
    """Cut each (question, context) into windows, pair by pair and from left to right.

    A window has at most `window` tokens, and as many as the model takes. A question keeps its last tokens where it
    would fill more than half of a window; neighbouring windows share `shared` tokens, or a third of a window where
    that is less. A pair whose context has no tokens has a window without context.
    """
    if not pairs:
        return []
    most = min(window, tokenizer.model_max_length)
    questions = keep_ends(tokenizer, [question for question, _ in pairs], most // 2)
    encoded = tokenizer(
        questions,
        [context for _, context in pairs],
        truncation="only_second",
        max_length=most,
        stride=min(shared, most // 3),
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        verbose=False,
    )
    names = [name for name in encoded if name not in ("offset_mapping", "overflow_to_sample_mapping")]
    windows = []
    for place, pair in enumerate(encoded["overflow_to_sample_mapping"]):
        sides = encoded.sequence_ids(place)
        spans = zip(sides, encoded["offset_mapping"][place], strict=True)
        offsets = tuple((int(start), int(end)) if side == 1 and end > start else None for side, (start, end) in spans)
        inputs = {name: encoded[name][place] for name in names}
        ids, first = inputs["input_ids"], tokenizer.cls_token_id
        windows.append(Window(pair, inputs, offsets, ids.index(first) if first in ids else 0))
    return windows


def keep_ends(tokenizer: Any, texts: Sequence[str], most: int) -> list[str]:
    """Return the texts; of those with more than `most` tokens the end, where an exam asks after it has told a case."""
    encoded = tokenizer(list(texts), add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    return [
        text if len(offsets) <= most else text[offsets[-most][0] :].lstrip()
        for text, offsets in zip(texts, encoded["offset_mapping"], strict=True)
    ]


def by_length(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Sort places into batches of at most `size`, the longest first, so that little is padded."""
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    return [order[start : start + size] for start in range(0, len(order), size)]
