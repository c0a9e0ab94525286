"""How near texts are to others: BLEU by sacrebleu and BERTScore by bert-score, each with what tells it apart.

Both come with the extra `companions`. They see texts alone; which texts are compared is for others to say.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from medexam import MedExamError
from medexam.errors import EngineError
from medexam.fingerprints import fingerprint_folder, resolve_commit

BERT_MODEL = "bert-base-multilingual-cased"
"""The library's own choice for languages other than English and Chinese, Spanish among them."""
_EXTRA = "pip install 'medexam[companions]'"


@dataclass(frozen=True)
class Bleu:
    """Corpus BLEU of several texts."""

    score: float
    """From 0 to 100."""
    signature: str
    """What sacrebleu says of tokenizer, smoothing and version, so that others can compute the same."""


def score_bleu(texts: Sequence[str], references: Sequence[str]) -> Bleu:
    """Score `texts`, at least one, by BLEU against one reference each; raises `MedExamError` without sacrebleu."""
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError:
        raise MedExamError(f"BLEU needs sacrebleu: {_EXTRA}") from None
    metric = BLEU()
    score = metric.corpus_score(list(texts), [list(references)]).score
    return Bleu(float(score), f"BLEU {metric.get_signature()}")


class BertScore:
    """BERTScore with one model, which is loaded once."""

    def __init__(self, model: str = BERT_MODEL, layer: int | None = None) -> None:
        """Load the model, a folder or a hub id; `layer` None takes the library's choice, which known hub ids have.

        Raises `EngineError` where the model cannot be loaded or has no such layer, and `MedExamError` without
        bert-score.
        """
        try:
            from bert_score import BERTScorer, utils
        except ImportError:
            raise MedExamError(f"BERTScore needs bert-score: {_EXTRA}") from None
        layer_number = utils.model2layers.get(model) if layer is None else layer
        if layer_number is None:
            raise EngineError(f"--bert-layer: bert-score knows no layer for {model}: name one, such as 9 of 12")
        self._check(model, layer_number)
        self.model, self.layer = model, layer_number
        folder = Path(model).expanduser()
        self._content = fingerprint_folder(folder) if folder.is_dir() else resolve_commit(model)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._scorer: Any = BERTScorer(model_type=model, num_layers=layer_number, idf=False, device=_device())
        except (OSError, ValueError, AttributeError) as error:
            raise EngineError(f"cannot load {model} for BERTScore: {' '.join(str(error).split())[:200]}") from None
        room = getattr(self._scorer._model.config, "max_position_embeddings", 512)
        self._scorer._tokenizer.model_max_length = min(self._scorer._tokenizer.model_max_length, room)

    @property
    def signature(self) -> str:
        """What tells the score apart: the model by its name and its content, a folder's fingerprint or a hub commit."""
        library = f"bert-score {version('bert-score')}"
        return f"BERTScore {Path(self.model).name} {self._content} layer {self.layer}, no idf, not rescaled ({library})"

    def score(self, texts: Sequence[str], references: Sequence[str]) -> list[float]:
        """Score each text against its reference by F1, mostly from 0 to 1; 0 for an empty text.

        What is longer than the model's context is cut.
        """
        places = [place for place, text in enumerate(texts) if text.strip()]
        scores = [0.0] * len(texts)
        if places:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _, _, f1 = self._scorer.score(
                    [texts[place] for place in places], [references[place] for place in places]
                )
            for place, value in zip(places, f1.tolist(), strict=True):
                scores[place] = value
        return scores

    def _check(self, model: str, layer: int) -> None:
        from transformers import AutoConfig

        try:
            config = AutoConfig.from_pretrained(model)
        except (OSError, ValueError) as error:
            raise EngineError(
                f"cannot load {model} for BERTScore ({' '.join(str(error).split())[:160]}): name a folder or a hub id "
                "with --bert-model, or leave BERTScore out with --no-bert"
            ) from None
        layers = getattr(config, "num_hidden_layers", None)
        if layers is not None and not 1 <= layer <= layers:
            raise EngineError(f"--bert-layer {layer}: {model} has layers 1 to {layers}")
        if "t5" in model and "t5" not in str(config.model_type):
            raise EngineError(
                f"bert-score would read {model} as a T5 model, because its path contains 't5': rename the folder, or "
                "make a link with another name"
            )


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
