"""Finds the span of a context that answers a question, with any extractive question answering model of transformers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from medexam.errors import EngineError
from medexam_companions.casimedicos.readers.loading import LoadedReader, pad
from medexam_companions.casimedicos.readers.windows import SHARED_TOKENS, WINDOW_TOKENS, Window, by_length, cut_windows

ANSWER_TOKENS = 30
"""Tokens of the longest answer, unless another limit is asked for; SQuAD's baselines have it."""


class Span(NamedTuple):
    """A part of a text that a reader took as the answer."""

    text: str
    start: int
    """Its first character, counted from 0 in the text that was read."""
    end: int
    """The character after its last one."""
    score: float
    """The sum of its start and end logit; the higher the better, comparable within one question only."""


@dataclass
class SpanReader:
    """Finds answers in contexts, with a question answering model that is loaded."""

    loaded: LoadedReader
    answer_tokens: int = ANSWER_TOKENS
    window: int = WINDOW_TOKENS
    shared: int = SHARED_TOKENS
    """As in `cut_windows`."""
    may_be_empty: bool = False
    """Whether a span without text is the answer where the model prefers none."""

    def __post_init__(self) -> None:
        self.batch = self.loaded.batch

    def read(self, pairs: Sequence[tuple[str, str]]) -> list[Span | None]:
        """Find in each (question, context) the span with the highest sum of start and end logit, over all windows.

        Entry i is pair i, None if its context has no tokens; of equals it is the first. A model trained on SQuAD 2.0
        gives its best span even if it prefers no answer, unless a span may be empty. It is empty where the first token,
        which means the whole text, has the higher sum of logits in every window (Devlin et al. 2019). Raises
        `EngineError` if the logits are not numbers.
        """
        windows = cut_windows(self.loaded.tokenizer, pairs, self.window, self.shared)
        best_by_window: dict[int, tuple[Span, float] | None] = {}
        for places in by_length([len(window.offsets) for window in windows], self.batch):
            best_by_window |= zip(places, self._read_batch([windows[place] for place in places], pairs), strict=True)
        spans: dict[int, Span] = {}
        no_answer: dict[int, float] = {}
        for place, window in enumerate(windows):
            if (best := best_by_window[place]) is not None:
                span, score = best
                spans[window.pair] = max(spans.get(window.pair, span), span, key=lambda one: one.score)
                no_answer[window.pair] = min(no_answer.get(window.pair, score), score)
        for pair, score in no_answer.items() if self.may_be_empty else ():
            if score > spans[pair].score:
                spans[pair] = Span("", 0, 0, score)
        return [spans.get(pair) for pair in range(len(pairs))]

    def _read_batch(
        self, windows: Sequence[Window], pairs: Sequence[tuple[str, str]]
    ) -> Iterator[tuple[Span, float] | None]:
        """Yield the best span of each window and the score of no answer; None for one without context."""
        import torch

        loaded = self.loaded
        inputs = pad(loaded.tokenizer, [window.inputs for window in windows], loaded.device)
        with torch.inference_mode():
            output: Any = loaded.model(**inputs)
        length = output.start_logits.shape[1]
        # The tokenizer may pad on either side, so a window's tokens are told by its attention mask.
        mask = inputs["attention_mask"].bool().cpu()
        context = torch.zeros((len(windows), length), dtype=torch.bool)
        for row, window in enumerate(windows):
            context[row, mask[row]] = torch.tensor([offset is not None for offset in window.offsets])
        start_logits, end_logits = output.start_logits.float().cpu(), output.end_logits.float().cpu()
        start, end = start_logits.masked_fill(~context, -torch.inf), end_logits.masked_fill(~context, -torch.inf)
        band = torch.ones((length, length), dtype=torch.bool).triu().tril(self.answer_tokens - 1)
        sums = (start[:, :, None] + end[:, None, :]).masked_fill(~band, -torch.inf).flatten(1)
        scores, flat = sums.max(dim=1)
        if bool(torch.isnan(sums).any()):
            raise EngineError(f"{loaded.weights.label}: its logits are not numbers; its weights are damaged")
        for row, (score, place) in enumerate(zip(scores.tolist(), flat.tolist(), strict=True)):
            if not bool(context[row].any()):
                yield None
                continue
            window, padding = windows[row], int(mask[row].int().argmax())
            first, last = (window.offsets[token - padding] for token in divmod(place, length))
            assert first is not None and last is not None  # noqa: S101, PT018 - chosen among the context's tokens
            text = pairs[window.pair][1][first[0] : last[1]]
            # Some tokenizers count spaces as a token's.
            begin = first[0] + len(text) - len(text.lstrip())
            span = Span(text.strip(), begin, begin + len(text.strip()), score)
            whole = padding + window.whole_text
            yield span, float(start_logits[row, whole] + end_logits[row, whole])
