"""Which languages a retriever reads, and what to say of questions in another one.

A vector of a text in a language that its encoder never saw is a vector all the same, so nothing fails: a warning has to
tell. What an encoder reads is known of MedCPT, and of a folder whose model card states it.
"""

from collections.abc import Collection
from pathlib import Path
from typing import get_args

from medexam.encoder_weights import MINILM, is_folder, minilm_folder
from medexam.questions import Language
from medexam.retrievers.corpus_rows import read_front_matter
from medexam.retrievers.encoders import MEDCPT, MEDCPT_ARTICLE, MEDCPT_QUERY, MEDCPT_QUERY_FOLDER
from medexam.specs import RetrieverSpec

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
        alternative = (
            f", or retriever.language: {language} if the corpus is in {name}" if language in _WORDS_READ else ""
        )
        messages.append(
            f"questions in {name} are looked up by their words in a corpus in {_NAMES[spec.language]} "
            f"(retriever.language): {_by_translations([spec.language])}{alternative}"
        )
    for model in (*([encoder] if spec.uses_vectors else []), *([] if spec.rerank is None else [spec.rerank])):
        codes = _read_languages(model)
        if codes and language not in codes:
            names = " and ".join(_NAMES.get(code, code) for code in codes)
            messages.append(
                f"questions in {name} are looked up by {Path(model).name}, which reads {names} only: "
                f"{_by_translations(codes)}, or choose a model that reads {name}"
            )
    return messages


def _by_translations(codes: Collection[str]) -> str:
    """Write the way out by the same questions in the first of the languages that questions have."""
    code = next((code for code in codes if code in _NAMES), "en")
    return f"set program.query_language: {code} to look up their {_NAMES[code]} translations"


def _read_languages(encoder: str | Path) -> list[str]:
    """Read the languages, as two-letter codes, of an encoder or a cross-encoder; empty if they are not known.

    They are `language` in the front matter of the folder's `README.md`, or of its query encoder's; a card that says
    `multilingual` names none. Hub ids other than MedCPT's are not looked up.
    """
    if encoder in (MEDCPT, MEDCPT_QUERY, MEDCPT_ARTICLE):
        return ["en"]
    if encoder != MINILM and not is_folder(encoder):
        return []
    folder = minilm_folder() if encoder == MINILM else Path(encoder).expanduser()
    for place in (folder, folder / MEDCPT_QUERY_FOLDER):
        entry = read_front_matter(place / "README.md").get("language") or []
        if codes := {str(code).lower()[:2] for code in ([entry] if isinstance(entry, str) else entry)}:
            return [] if "mu" in codes else sorted(codes)
    return []
