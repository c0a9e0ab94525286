"""How likely a premise entails a hypothesis, by any model of natural language inference."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medexam.errors import EngineError
from medexam_companions.casimedicos.readers.loading import LoadedReader, pad
from medexam_companions.casimedicos.readers.windows import by_length, keep_ends

PAIR_TOKENS = 512
"""Tokens of a premise and its hypothesis together; a longer premise is cut at its end."""


class EntailmentReader:
    """Judges hypotheses by premises, with a classifier that is loaded."""

    def __init__(self, loaded: LoadedReader) -> None:
        """Take a loaded model; raises `EngineError` unless one label is `entailment` or `entailed`, in any case."""
        self.batch = loaded.batch
        self._loaded = loaded
        labels = loaded.model.config.label2id
        numbers = [number for label, number in labels.items() if label.strip().lower() in ("entailment", "entailed")]
        if len(numbers) != 1:
            raise EngineError(
                f"{loaded.weights.source}: its labels are {', '.join(map(str, labels))}, and one of them must be "
                "entailment: name a model of natural language inference, or correct label2id in its config.json"
            )
        self._entailed = numbers[0]

    def read(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Score each (premise, hypothesis) by the log of the softmax over the model's labels, at entailment.

        The scores are `[n]`, in nats; entry i is pair i. Premise and hypothesis have at most `PAIR_TOKENS` tokens
        together; the premise is cut, and of a hypothesis that fills more than half the end is kept. Raises
        `EngineError` if the logits are not numbers.
        """
        import torch

        scores = np.empty(len(pairs), dtype=np.float64)
        if not pairs:
            return scores
        loaded, tokenizer = self._loaded, self._loaded.tokenizer
        most = min(PAIR_TOKENS, tokenizer.model_max_length)
        premises = [premise for premise, _ in pairs]
        hypotheses = keep_ends(tokenizer, [hypothesis for _, hypothesis in pairs], most // 2)
        encoded = tokenizer(premises, hypotheses, truncation="only_first", max_length=most, verbose=False)
        for places in by_length([len(ids) for ids in encoded["input_ids"]], self.batch):
            inputs = [{name: encoded[name][place] for name in encoded} for place in places]
            with torch.inference_mode():
                output: Any = loaded.model(**pad(tokenizer, inputs, loaded.device))
            scores[places] = torch.log_softmax(output.logits.double().cpu(), dim=1)[:, self._entailed].numpy()
        if not np.isfinite(scores).all():
            raise EngineError(f"{loaded.weights.label}: its logits are not numbers; its weights are damaged")
        return scores
