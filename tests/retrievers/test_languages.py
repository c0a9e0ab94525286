"""Which languages encoders read, by name and by their model cards."""

import pytest

from medexam.retrievers.languages import read_languages, warn_of_language
from medexam.specs import RetrieverSpec


@pytest.mark.parametrize(
    ("name", "languages"),
    [
        ("medcpt", {"en"}),
        ("ncbi/MedCPT-Article-Encoder", {"en"}),
        ("minilm", {"en"}),
        ("someone/multilingual-model", None),
        ("./nowhere", None),
    ],
)
def test_languages_by_name(name, languages) -> None:
    assert read_languages(name) == languages


@pytest.mark.parametrize(
    ("card", "languages"),
    [
        ("---\nlanguage: en\n---\n", {"en"}),
        ("---\nlanguage: [en, es-419]\n---\n", {"en", "es"}),
        ("---\nlanguage:\n- multilingual\n- en\n---\n", None),
        ("---\nlicense: mit\n---\n", None),
        ("---\nlanguage: [\n---\n", None),
        ("# No front matter\n", None),
    ],
)
@pytest.mark.parametrize("place", ["README.md", "query-encoder/README.md"])
def test_languages_by_card(card, languages, place, tmp_path) -> None:
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text(card, encoding="utf-8")
    assert read_languages(tmp_path) == languages


@pytest.mark.parametrize(
    ("settings", "language", "parts"),
    [
        ({"kind": "medcpt"}, "en", []),
        ({"kind": "medcpt"}, "es", ["medcpt, which reads English only"]),
        ({"kind": "medcpt"}, "gl", ["questions in Galician"]),
        ({"kind": "bm25"}, "es", ["by their words in a corpus in English"]),
        ({"kind": "bm25", "language": "es"}, "es", []),
        ({"kind": "bm25"}, "gl", ["or retriever.language: gl if the corpus is in Galician"]),
        ({"kind": "bm25"}, "fr", ["questions in French"]),
        ({"kind": "tfidf", "language": "es"}, "en", ["by their words in a corpus in Spanish"]),
        ({"kind": "fusion"}, "es", ["by their words", "medcpt, which reads English only"]),
        ({"kind": "bm25", "language": "es", "rerank": "medcpt"}, "es", ["medcpt, which reads English only"]),
    ],
)
def test_what_is_warned_of(settings, language, parts) -> None:
    found = warn_of_language(RetrieverSpec(**settings), "medcpt", language)
    assert len(found) == len(parts)
    assert all(part in warning for part, warning in zip(parts, found, strict=True))
