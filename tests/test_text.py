from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medexam.errors import EngineError
from medexam.text import hide_address, hide_secrets, remember_secret, split_sentences


def _texts(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text)]


def test_lines_and_marks_before_no_small_letter_end_sentences() -> None:
    passage = "What is it? It is 3.5 mg of a drug. ¿Qué es? Es fiebre.\n- One item\n\n...\nan end"
    assert _texts(passage) == [
        "What is it?",
        "It is 3.5 mg of a drug.",
        "¿Qué es?",
        "Es fiebre.",
        "- One item",
        "...",
        "an end",
    ]
    assert split_sentences(" \n") == []


def test_a_mark_before_a_small_letter_ends_none() -> None:
    assert _texts("Aprox. tres mg al día. Se trata.") == ["Aprox. tres mg al día.", "Se trata."]
    assert _texts("Dijo «no.» Y se fue.") == ["Dijo «no.»", "Y se fue."]


@given(st.text(alphabet='aB1 .!?\n\t«»"ñÉ', max_size=60))
def test_every_character_that_is_no_space_is_in_one_sentence(text: str) -> None:
    spans = split_sentences(text)
    assert all(start < end for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    held = {place for start, end in spans for place in range(start, end)}
    assert all(place in held for place, character in enumerate(text) if not character.isspace())


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("at http://me:canary@gpu1:8000/v1 now", "at http://[hidden]@gpu1:8000/v1 now"),
        ("postgresql+psycopg://me:ca/na@ry@host/db", "postgresql+psycopg://[hidden]@host/db"),
        ("'https:/me:canary@host/x'", "'https:/[hidden]@host/x'"),
        ("GET /v1?model=m&api_key=canary&x=1", "GET /v1?model=m&api_key=[hidden]&x=1"),
        ("http://h/?token=canary (refused)", "http://h/?token=[hidden] (refused)"),
        ("header 'Bearer canary-canary'", "header 'Bearer [hidden]'"),
        ("key sk-0123456789abcdef01 is wrong", "key [hidden] is wrong"),
        ("http://gpu1:8000/v1/models/me@home", "http://gpu1:8000/v1/models/me@home"),
        ("docker://vllm/vllm-openai@sha256:0", "docker://vllm/vllm-openai@sha256:0"),
        ("sqlite:////home/me/runs/mlflow.db", "sqlite:////home/me/runs/mlflow.db"),
        ("write to me@example.org; 2 tokens, key=value", "write to me@example.org; 2 tokens, key=value"),
    ],
)
def test_what_looks_secret_is_hidden_and_nothing_else(said: str, shown: str) -> None:
    assert hide_secrets(said) == shown
    assert str(EngineError(said)) == shown
    assert said == shown or said not in repr(EngineError(said))


def test_what_is_known_to_be_secret_is_hidden_however_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "first-line\nsecond-line")
    monkeypatch.setenv("SOME_PLACE", "open-to-all")
    assert (
        hide_secrets(f"{b'Bearer first-line'!r}, second-line, open-to-all")
        == "b'Bearer [hidden]', [hidden], open-to-all"
    )
    remember_secret("a secret/word")
    assert hide_secrets("a secret/word, a%20secret%2Fword") == "[hidden], [hidden]"
    assert hide_address("http://me:p s#w?rd@host/x") == "http://[hidden]@host/x"
    assert hide_secrets("host with 'p s#w?rd'") == "host with '[hidden]'"
