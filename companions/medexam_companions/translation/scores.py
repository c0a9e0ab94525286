"""How near texts are to others: BLEU by sacrebleu and BERTScore by bert-score, each with what tells it apart.

Both come with the extra `companions`. Which texts are compared is for others to say.
"""

import warnings
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from medexam import MedExamError
from medexam.errors import EngineError
from medexam.weights import fingerprint_folder, resolve_commit
from medexam_companions.translation.layout import QuestionText, render_layout

BERT_MODEL = "bert-base-multilingual-cased"
"""The library's own choice for languages other than English and Chinese, Spanish among them."""
_EXTRA = "pip install 'medexam[companions]'"


def score_bleu(texts: Sequence[str], references: Sequence[str]) -> tuple[float, str]:
    """Score `texts`, at least one, by corpus BLEU against one reference each, from 0 to 100.

    Return it with what sacrebleu says of tokenizer, smoothing and version, so that others can compute the same. Raises
    `MedExamError` without sacrebleu.
    """
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError:
        raise MedExamError(f"BLEU needs sacrebleu: {_EXTRA}") from None
    metric = BLEU()
    score = metric.corpus_score(list(texts), [list(references)]).score
    return float(score), f"BLEU {metric.get_signature()}"


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
        import torch

        layer_number = utils.model2layers.get(model) if layer is None else layer
        if layer_number is None:
            raise EngineError(f"--bert-layer: bert-score knows no layer for {model}: name one, such as 9 of 12")
        self.model, self.layer = model, layer_number
        folder = Path(model).expanduser()
        device = "cuda" if torch.cuda.is_available() else "cpu"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._scorer: Any = BERTScorer(model_type=model, num_layers=layer_number, idf=False, device=device)
            self._content = fingerprint_folder(folder) if folder.is_dir() else resolve_commit(model)
        except (OSError, ValueError, AttributeError, AssertionError) as error:
            raise EngineError(
                f"cannot load layer {layer_number} of {model} for BERTScore ({' '.join(str(error).split())[:160]}): "
                "name a folder or a hub id with --bert-model and its layer with --bert-layer, or leave BERTScore out "
                "with --no-bert"
            ) from None
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
        pairs = {place: pair for place, pair in enumerate(zip(texts, references, strict=True)) if pair[0].strip()}
        scores = [0.0] * len(texts)
        if pairs:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _, _, f1 = self._scorer.score(*map(list, zip(*pairs.values(), strict=True)))
            for place, value in zip(pairs, f1.tolist(), strict=True):
                scores[place] = value
        return scores


def compare_texts(
    texts: Sequence[QuestionText], references: Sequence[QuestionText], bert: BertScore | None
) -> tuple[float, float | None, list[str]]:
    """Score texts, at least one, by BLEU and the mean BERTScore; return both, and what tells the scores apart."""
    layouts, reference_layouts = (list(map(render_layout, side)) for side in (texts, references))
    bleu, signature = score_bleu(layouts, reference_layouts)
    if bert is None:
        return bleu, None, [signature]
    return bleu, sum(bert.score(layouts, reference_layouts)) / len(layouts), [signature, bert.signature]
