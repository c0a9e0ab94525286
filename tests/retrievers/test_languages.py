"""A retriever that reads another language than the questions' is warned of."""

import json

import pytest

from medexam.retrievers import plan_retriever
from medexam.specs import RetrieverSpec


@pytest.fixture
def warnings(tmp_path):
    """`warnings({"kind": "bm25"}, "es")`: those of a retriever over a corpus of one passage."""
    path = tmp_path / "passages.jsonl"
    path.write_text(json.dumps({"id": "1", "content": "heart"}))
    return lambda settings, language: plan_retriever(RetrieverSpec(corpus=path, **settings)).warnings(language)


@pytest.mark.parametrize(
    ("settings", "language", "parts"),
    [
        ({"kind": "dense", "encoder": "minilm"}, "en", []),
        ({"kind": "dense", "encoder": "minilm"}, "gl", ["questions in Galician"]),
        ({"kind": "bm25"}, "es", ["by their words in a corpus in English"]),
        ({"kind": "bm25"}, "gl", ["or retriever.language: gl if the corpus is in Galician"]),
        ({"kind": "bm25", "language": "es"}, "en", ["by their words in a corpus in Spanish"]),
        ({"kind": "fusion", "encoder": "minilm"}, "es", ["by their words", "reads English only"]),
    ],
)
def test_what_is_warned_of(warnings, settings, language, parts) -> None:
    found = warnings(settings, language)
    assert len(found) == len(parts)
    assert all(part in warning for part, warning in zip(parts, found, strict=True))
