"""What to say of questions in a language that a retriever does not read.

A vector of a text in a language that its encoder never saw is a vector all the same, so nothing fails: a warning has to
tell. MedCPT and MiniLM read English; what other encoders read is not known here.
"""

from pathlib import Path
from typing import get_args

from medexam.questions import Language
from medexam.retrievers.encoders import MEDCPT, MEDCPT_ARTICLE, MEDCPT_QUERY, is_medcpt_folder
from medexam.specs import RetrieverSpec
from medexam.weights import MINILM

_NAMES: dict[str, str] = {
    "en": "English",
    "es": "Spanish",
    "gl": "Galician",
    "it": "Italian",
    "ru": "Russian",
    "fr": "French",
    "ja": "Japanese",
    "zh": "Chinese",
}
_WORDS_READ = get_args(RetrieverSpec.model_fields["language"].annotation)
"""The languages whose words BM25 knows."""


def warn_of_language(spec: RetrieverSpec, encoder: str | Path, language: Language) -> list[str]:
    """Write what to say where queries in `language` are sent to a retriever that reads another one; usually empty.

    `encoder` is the one that the spec means, where its kind has one.
    """
    messages, name = [], _NAMES[language]
    if spec.uses_words and language != spec.language:
        corpus = _NAMES[spec.language]
        choice = f", or retriever.language: {language} if the corpus is in {name}" if language in _WORDS_READ else ""
        messages.append(
            f"questions in {name} are looked up by their words in a corpus in {corpus} (retriever.language): set "
            f"program.query_language: {spec.language} to look up their {corpus} translations{choice}"
        )
    for model in (*([encoder] if spec.uses_vectors else []), *([] if spec.rerank is None else [spec.rerank])):
        reads_english = model in (MEDCPT, MEDCPT_QUERY, MEDCPT_ARTICLE, MINILM) or is_medcpt_folder(model)
        if reads_english and language != "en":
            messages.append(
                f"questions in {name} are looked up by {Path(model).name}, which reads English only: set "
                f"program.query_language: en to look up their English translations, or choose a model that reads {name}"
            )
    return messages
