"""What tells two models apart, and what does not: an identity as a server shows it, with one thing changed."""

import asyncio
from typing import Any

import pytest
from wire_server import Wire, serving

from medexam.serve import Endpoint, probe_endpoint

UNTOLD = dict.fromkeys(("hub_id", "commit", "dialogue", "behaviour"))
SERVED = {"name": "tiny", "hub_id": "org/model", "commit": "a" * 40, "dialogue": "d1"}
LOCAL = UNTOLD | {"engine": "embedded", "name": "a", "content": "sha256:1", "dtype": "float32"}
HOSTED = UNTOLD | {"engine": "litellm", "name": "gpt-1"}


@pytest.fixture(scope="module")
def known() -> Any:
    """What a server shows of its model."""
    with serving(Wire()) as wire:
        return asyncio.run(probe_endpoint(Endpoint(wire.address, "EMPTY"), None)).identity


def _shown(known: Any, fields: dict[str, Any], behaviour: dict[str, Any] | None) -> Any:
    """The identity with these fields; `behaviour` None: it shows none."""
    shown = {"behaviour": None} if behaviour is None else {"behaviour": known.behaviour.model_copy(update=behaviour)}
    return known.model_copy(update=fields | shown)


READ = {"tokens": (1, 2, 3), "logprobs": (-1.0, -2.0), "reply": "x", "noise": 0.0}
WORDS = {"tokens": (), "logprobs": (), "reply": "Fémur", "noise": 0.0}


def _drifted(nats: float) -> dict[str, Any]:
    return READ | {"logprobs": (-1.0 - nats, -2.0 - nats)}


@pytest.mark.parametrize(
    ("first", "behaviour", "change", "changed", "said"),
    [
        (SERVED, READ, {"name": "other"}, READ, "it is other, not tiny"),
        (SERVED, READ, {"dialogue": "d2"}, READ, "chat template and tokenizer d2, not d1"),
        (SERVED, READ, {"dialogue": None}, READ, "chat template and tokenizer untold, not d1"),
        (SERVED, READ, {"hub_id": "org/model-AWQ"}, READ, "its weights come from org/model-AWQ, not org/model"),
        (SERVED, READ, {"commit": "b" * 40}, READ, "its weights come from bbbb"),
        (SERVED, READ, {}, _drifted(0.2), "differ by 0.200 nats a token"),
        (SERVED, READ, {}, READ | {"tokens": (1, 2, 4)}, "its tokenizer splits a fixed text into other tokens"),
        (SERVED, READ, {}, READ | {"logprobs": ()}, "its log-probabilities are no longer available"),
        (SERVED, READ, {}, None, "its answers to a fixed text are no longer available"),
        (LOCAL, None, {"content": "sha256:2"}, None, "weights sha256:2, not sha256:1"),
        (LOCAL, None, {"dtype": "bfloat16"}, None, "dtype bfloat16, not float32"),
        (HOSTED, WORDS, {"name": "gpt-1-2026-11"}, WORDS, "it is gpt-1-2026-11, not gpt-1"),
        (HOSTED, WORDS, {}, WORDS | {"reply": "Tibia"}, "continues a fixed text with 'Tibia', not"),
        (HOSTED, WORDS, {}, None, "no longer available"),
    ],
)
def test_another_model(known, first, behaviour, change, changed, said) -> None:
    one, other = _shown(known, first, behaviour), _shown(known, first | change, changed)
    (found,) = one.differences(other)
    assert said in found
    assert other.print != one.print


@pytest.mark.parametrize(
    ("first", "behaviour", "change", "changed"),
    [
        (SERVED, READ, {"notes": {"version": "vllm 0.33.0", "source": "/mnt/b"}}, READ),
        (SERVED, READ, {"hub_id": None, "commit": None}, READ),
        (SERVED, READ, {}, _drifted(0.01)),
        (SERVED, READ, {}, _drifted(0.2) | {"noise": 0.1}),
        (SERVED, READ, {}, READ | {"reply": "y"}),
        (LOCAL, None, {"name": "a-moved-folder"}, None),
        (HOSTED, WORDS, {}, WORDS | {"reply": "Tibia", "noise": None}),
    ],
    ids=[
        "notes",
        "a folder of its own",
        "rounding",
        "a server's own noise",
        "a tie in the continuation",
        "a folder's name",
        "unsteady",
    ],
)
def test_the_same_model(known, first, behaviour, change, changed) -> None:
    one, other = _shown(known, first, behaviour), _shown(known, first | change, changed)
    assert one.differences(other) == []
    assert "notes" not in change or other.print == one.print
