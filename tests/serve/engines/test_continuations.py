"""Continuations through the engines: against transformers alone, and against servers that do not do what is asked."""

import asyncio
from typing import Any

import pytest
import torch
from dspy.lm15 import Config, Message, Request
from wire_server import Wire, serving

from asked import complete
from medexam.datasets import load_exam_set
from medexam.dspy_requests import CONTINUATIONS
from medexam.errors import InvalidRequestError, LogprobsUnavailableError
from medexam.model_calls import ContinuationLogprobs, ContinuationRequest
from medexam.serve import EmbeddedEngine, LocalModel, ScriptedEngine, build_engine, find_weights, split_tokens
from medexam.serve.diagnostics.read_check import check_reads
from medexam.serve.local_model.scoring import takes_trees
from medexam.specs import DatasetSpec, EngineNeeds, ModelSpec

QUESTIONS = load_exam_set(DatasetSpec(name="headqa_sample", language="en", limit=4)).questions
TWINS = (" The heart", " The heart muscle", " The heart", " Liver")
BLOCK = 16
"""Tokens of the pieces in which a server that does not tell is taken to remember prompts."""


def to_request(prompt: str, texts, **options) -> Request:
    asked = ContinuationRequest(texts=tuple(texts), **options)
    config = Config(extensions={CONTINUATIONS: asked.model_dump(mode="json")})
    return Request(model="m", messages=(Message.user(prompt),), config=config)


def read(engine, *requests) -> list[ContinuationLogprobs]:
    async def ask():
        return await asyncio.gather(*(complete(engine, request) for request in requests))

    return [
        ContinuationLogprobs.model_validate(response.provider_data[CONTINUATIONS]) for response in asyncio.run(ask())
    ]


def plainly(engine: EmbeddedEngine, prompt: str, texts) -> list[list[float]]:
    """The token log-probabilities of each text by one forward pass of transformers for each."""
    model, tokenizer = engine._model.model, engine._model.tokenizer
    found = []
    for text in texts:
        start = len(tokenizer(prompt, add_special_tokens=False).input_ids)
        ids = tokenizer(prompt + text, add_special_tokens=False, return_tensors="pt").input_ids
        with torch.inference_mode():
            logprobs = model(ids).logits[0].float().log_softmax(-1)
        found.append([logprobs[place - 1, ids[0, place]].item() for place in range(start, ids.shape[1])])
    return found


def see_all_before(rows, width: int, shared: int, device) -> torch.Tensor:
    """The mask of plain text, which a model without masks of its own would fall back to."""
    return torch.ones(len(rows), 1, width, shared + width, dtype=torch.bool, device=device).tril(shared)


def prompts() -> list[tuple[str, tuple[str, ...]]]:
    asked = [(f"Question: {q.stem}\nAnswer:", tuple(f" {o.text}" for o in q.options)) for q in QUESTIONS]
    return [*asked, ("Question: What pumps blood?\nAnswer:", TWINS)]


@pytest.mark.model
@pytest.mark.parametrize("engine", ["tiny_engine", "smollm2_engine"])
def test_the_embedded_engine_reads_what_transformers_computes(engine, request) -> None:
    cases = prompts() if engine == "tiny_engine" else prompts()[-1:]
    engine = request.getfixturevalue(engine)
    computed = [plainly(engine, prompt, texts) for prompt, texts in cases]
    ways = [(way, of_each) for way in ("echo", "trie") for of_each in computed]
    readings = read(
        engine, *(to_request(prompt, texts, read_by=way) for way in ("echo", "trie") for prompt, texts in cases)
    )
    for (way, of_each_text), reading in zip(ways, readings, strict=True):
        assert reading.read_by == way
        for continuation, expected in zip(reading.continuations, of_each_text, strict=True):
            assert list(continuation.logprobs) == pytest.approx(expected, abs=1e-4)


@pytest.mark.model
def test_a_dialogue_with_a_shared_opening(tiny_engine) -> None:
    opening = "You are a careful physician who answers the questions of an examination with one option. "
    cases = [(opening + q.stem, tuple(o.text for o in q.options)) for q in QUESTIONS[:2]]
    readings = read(tiny_engine, *(to_request(prompt, texts, template=True) for prompt, texts in cases))
    for (prompt, texts), reading in zip(cases, readings, strict=True):
        rendered = tiny_engine._model.render([{"role": "user", "content": prompt}], "")
        for continuation, expected in zip(reading.continuations, plainly(tiny_engine, rendered, texts), strict=True):
            assert list(continuation.logprobs) == pytest.approx(expected, abs=1e-4)


@pytest.mark.model
def test_labels_are_read_at_one_place_and_their_mass_is_whole(tiny_engine) -> None:
    prompt = "Which organ makes insulin?\n1. The liver.\n2. The pancreas.\nAnswer:"
    (reading,) = read(tiny_engine, to_request(prompt, (" 1", " 2"), given_opening=True))
    assert reading.read_by == "label"
    model, tokenizer = tiny_engine._model.model, tiny_engine._model.tokenizer
    first, second = (tokenizer(prompt + label, return_tensors="pt").input_ids for label in (" 1", " 2"))
    with torch.inference_mode():
        chances = model(first[:, :-1]).logits[0, -1].float().softmax(-1)
    expected = (chances[first[0, -1]] + chances[second[0, -1]]).item()
    assert reading.mass == pytest.approx(expected, rel=1e-4)


@pytest.mark.model
def test_the_tree_reads_fewer_tokens(tiny_engine) -> None:
    prompt, texts = prompts()[0]
    trie, echo = read(tiny_engine, *(to_request(prompt, texts, read_by=way) for way in ("trie", "echo")))
    assert trie.computed_tokens < echo.computed_tokens / 2


@pytest.mark.model
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_trees_are_taken_whatever_the_rounding_and_refused_without_the_mask(dtype, smollm2_engine, monkeypatch) -> None:
    model = smollm2_engine._model
    if dtype != model.dtype_name:
        spec = ModelSpec(dtype=dtype)
        model = LocalModel(spec, find_weights(spec))
    prompt, texts = prompts()[0]
    opening, *whole = model.encode([prompt, *(prompt + text for text in texts)])
    candidates = split_tokens(opening, whole)
    assert takes_trees(model, candidates)
    monkeypatch.setattr("medexam.serve.local_model.scoring._see_ancestors", see_all_before)
    assert not takes_trees(model, candidates)


@pytest.mark.model
@pytest.mark.parametrize(("texts", "message"), [(("",), "no token of its own"), ((), "at least 1 item")])
def test_texts_that_cannot_be_read(tiny_engine, texts, message) -> None:
    config = Config(extensions={CONTINUATIONS: {"texts": list(texts)}})
    with pytest.raises(InvalidRequestError, match=message):
        asyncio.run(complete(tiny_engine, Request(model="m", messages=(Message.user("Hi"),), config=config)))


def build(wire: Wire, *, logprobs: bool = True):
    spec = ModelSpec(engine="vllm", endpoints=(wire.address,))
    return asyncio.run(build_engine(spec, EngineNeeds(logprobs=logprobs)))


def test_echo_and_trie_read_the_same_from_a_server() -> None:
    with serving(Wire()) as wire:
        engine = build(wire)
        ways = {}
        for way in ("echo", "trie"):
            (ways[way],) = read(engine, to_request("What pumps blood?", TWINS, read_by=way))
        assert ways["echo"].continuations == ways["trie"].continuations
        assert ways["echo"].continuations[0].total == sum(-(ord(letter) % 7) - 0.5 for letter in TWINS[0])
        (labels,) = read(engine, to_request("Which?", (" 1", " 2"), given_opening=True))
        assert labels.read_by == "label"
        asyncio.run(engine.aclose())


def ask_by_trie(prompt: str, texts: tuple[str, ...]) -> tuple[ContinuationLogprobs, list[dict[str, Any]]]:
    """The reading of some texts behind a prompt, and the completions requests that it took."""
    with serving(Wire()) as wire:
        engine = build(wire)
        before = len(wire.bodies("/v1/completions"))
        (reading,) = read(engine, to_request(prompt, texts, read_by="trie"))
        asyncio.run(engine.aclose())
        return reading, wire.bodies("/v1/completions")[before:]


def test_a_tree_is_asked_for_in_few_requests_and_its_prompt_first() -> None:
    short = (" Hip", " Hips", " Hip", " Leg")
    _, (first, *others) = ask_by_trie("x" * 2 * BLOCK, short)
    assert len(first["prompt"]) == 1
    assert sum(len(body["prompt"]) for body in others) == len(
        {text[:end] for text in short for end in range(1, len(text))}
    )
    assert len(others) == 1


def test_a_tree_is_walked_where_most_of_a_block_would_be_computed_for_each_place() -> None:
    walked, (first, *others) = ask_by_trie("x" * (3 * BLOCK - 1), TWINS)
    logprobs = [[-(ord(letter) % 7) - 0.5 for letter in text] for text in TWINS]
    assert [list(continuation.logprobs) for continuation in walked.continuations] == logprobs
    assert len(first["prompt"]) == 1
    assert all(len(body["prompt"]) == 1 < body["max_tokens"] for body in others)
    # Some letters come twice, which the server here does not write.
    assert len(others) < sum(map(len, TWINS)) / 2


@pytest.mark.parametrize(("echo", "named", "ways"), [(True, False, {"echo"}), (False, True, {"trie", "label"})])
def test_only_what_a_server_honours_is_used(echo, named, ways) -> None:
    with serving(Wire(echo=echo, named=named)) as wire:
        engine = build(wire)
        (reading,) = read(engine, to_request("What pumps blood?", TWINS))
        assert reading.read_by in ways
        verdicts = {verdict.way: verdict.refusal for verdict in asyncio.run(check_reads(engine))}
        asyncio.run(engine.aclose())
    assert {way for way, refusal in verdicts.items() if refusal is None} == ways
    assert all("does not honour" in refusal for refusal in verdicts.values() if refusal)


@pytest.mark.parametrize(
    ("wire", "said"),
    [
        (Wire(echo=False, named=False), "gives no log-probabilities of given tokens"),
        (Wire(tokenize=False), "does not serve /tokenize"),
    ],
)
def test_a_server_that_ignores_what_is_asked_is_refused_at_the_start(wire, said) -> None:
    with serving(wire), pytest.raises(LogprobsUnavailableError, match=said):
        build(wire)


@pytest.mark.parametrize("way", ["echo", "trie"])
@pytest.mark.parametrize("garble", ["nan", "equal", "other"])
def test_replies_that_cannot_be_right_are_refused(way, garble) -> None:
    with serving(Wire()) as wire:
        engine = build(wire)
        wire.garble = garble
        with pytest.raises(LogprobsUnavailableError, match="the reply was"):
            read(engine, to_request("What pumps blood?", TWINS, read_by=way))
        asyncio.run(engine.aclose())


def test_a_short_echo_is_refused() -> None:
    with serving(Wire()) as wire:
        engine = build(wire)
        wire.garble = "short"
        with pytest.raises(LogprobsUnavailableError, match=r"try program\.read_by=trie"):
            read(engine, to_request("What pumps blood?", TWINS, read_by="echo"))
        asyncio.run(engine.aclose())


def test_a_script_is_held_to_the_same_rules() -> None:
    script = ScriptedEngine({"*": {"logprobs": [[-1.0, float("nan")], [-2.0]]}})
    with pytest.raises(LogprobsUnavailableError, match="nan"):
        read(script, to_request("Which?", (" the heart", " liver")))
    with pytest.raises(LogprobsUnavailableError, match="no logprobs"):
        read(ScriptedEngine({"*": "1"}), to_request("Which?", (" the heart", " liver")))
