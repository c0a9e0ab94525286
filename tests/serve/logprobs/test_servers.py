"""Log-probabilities of given texts from a server: the same numbers by each way, in few requests, or a refusal."""

from typing import Any

import pytest
from engine_calls import COMPLETIONS, ask, reaching, reply
from wire_server import Wire, serving

from medexam.errors import LogprobsUnavailableError
from medexam.model_calls import ContinuationLogprobs, ContinuationRequest
from medexam.specs import EngineNeeds

NEEDS = EngineNeeds(logprobs=True)
TWINS = (" The heart", " The heart muscle", " The heart", " Liver")
PROMPT = "What pumps blood?"
BLOCK = 16
"""Tokens of the pieces in which a server that does not tell is taken to remember prompts."""


async def read(engine: Any, prompt: str, texts: tuple[str, ...], **options: Any) -> ContinuationLogprobs:
    asked = ContinuationRequest(texts=texts, **options)
    found = (await reply(engine, ask(prompt, more={"continuations": asked}))).reading
    assert found is not None
    return found


def expected(wire: Wire, prompt: str, texts: tuple[str, ...]) -> list[list[float]]:
    """What the server's model has for each letter of each text."""
    found = []
    for text in texts:
        letters = [ord(letter) for letter in prompt + text]
        found.append([wire.logprob(letters[n], letters[:n]) for n in range(len(prompt), len(letters))])
    return found


def numbers(reading: ContinuationLogprobs) -> list[list[float]]:
    return [list(one.logprobs) for one in reading.continuations]


@pytest.mark.parametrize("length", [17, 2 * BLOCK, 3 * BLOCK - 1, 5 * BLOCK + 3, 200])
@pytest.mark.parametrize("way", ["echo", "trie", "auto"])
async def test_every_way_reads_the_models_numbers(way: str, length: int) -> None:
    prompt = ("Which organ pumps blood? " * 10)[:length]
    with serving(Wire()) as wire:
        async with reaching(wire, needs=NEEDS) as engine:
            reading = await read(engine, prompt, TWINS, read_by=way)
    assert numbers(reading) == expected(wire, prompt, TWINS)
    assert reading.continuations[0].total == sum(expected(wire, prompt, TWINS)[0])
    assert way in ("auto", reading.read_by)


async def test_labels_are_read_at_one_place() -> None:
    with serving(Wire()) as wire:
        async with reaching(wire, needs=NEEDS) as engine:
            labels = await read(engine, "Which?", (" 1", " 2", " 3"), given_opening=True)
    assert labels.read_by == "label"
    assert numbers(labels) == [one[1:] for one in expected(wire, "Which?", (" 1", " 2", " 3"))]
    assert len(wire.bodies(COMPLETIONS)) == 1


@pytest.mark.parametrize(
    ("length", "texts", "way"),
    [
        (69, tuple(f"{n}bcdefghij" for n in range(5)), "echo"),
        (420, tuple(f"{n}bcdefghij" for n in range(5)), "trie"),
        (420, tuple(map(str, range(5))), "label"),
    ],
)
async def test_the_cheapest_way_depends_on_the_length_of_the_prompt(length: int, texts: tuple[str, ...], way: str):
    with serving(Wire()) as wire:
        async with reaching(wire, needs=NEEDS) as engine:
            reading = await read(engine, "x" * length, texts)
            echo = await read(engine, "x" * length, texts, read_by="echo")
    assert reading.read_by == way
    assert echo.computed_tokens == sum(length + len(text) for text in texts)
    assert reading.computed_tokens <= echo.computed_tokens


async def test_a_tree_is_asked_for_in_few_requests_and_its_prompt_first() -> None:
    short = (" Hip", " Hips", " Hip", " Leg")
    with serving(Wire()) as wire:
        async with reaching(wire, needs=NEEDS) as engine:
            await read(engine, "x" * 2 * BLOCK, short, read_by="trie")
            first, *others = wire.bodies(COMPLETIONS)
    places = {text[:end] for text in short for end in range(1, len(text))}
    assert (len(first["prompt"]), len(others), sum(len(body["prompt"]) for body in others)) == (1, 1, len(places))


async def test_a_tree_is_walked_where_most_of_a_block_would_be_computed_for_each_place() -> None:
    with serving(Wire()) as wire:
        async with reaching(wire, needs=NEEDS) as engine:
            await read(engine, "x" * (3 * BLOCK - 1), TWINS, read_by="trie")
            first, *others = wire.bodies(COMPLETIONS)
    assert len(first["prompt"]) == 1
    assert all(len(body["prompt"]) == 1 < body["max_tokens"] for body in others)
    # Some letters come twice, which the server here does not write.
    assert len(others) < sum(map(len, TWINS)) / 2


async def test_no_request_names_more_tokens_than_a_server_takes() -> None:
    texts = tuple(first + chr(65 + 6 * n + m) for n, first in enumerate("wxyz") for m in range(6))
    with serving(Wire(most_named=20)) as wire:
        async with reaching(wire, needs=NEEDS) as engine:
            reading = await read(engine, PROMPT, texts, read_by="trie")
    assert numbers(reading) == expected(wire, PROMPT, texts)
    assert max(len(body["logprob_token_ids"]) for body in wire.bodies(COMPLETIONS)) <= 20


@pytest.mark.parametrize(("echo", "named", "ways"), [(True, False, {"echo"}), (False, True, {"trie", "label"})])
async def test_only_what_a_server_honours_is_used(echo: bool, named: bool, ways: set[str]) -> None:
    with serving(Wire(echo=echo, named=named)) as wire:
        async with reaching(wire, needs=NEEDS) as engine:
            reading = await read(engine, PROMPT, TWINS)
            assert reading.read_by in ways
            assert numbers(reading) == expected(wire, PROMPT, TWINS)
            for way in {"echo", "trie"} - ways:
                with pytest.raises(LogprobsUnavailableError, match="does not honour"):
                    await read(engine, PROMPT, TWINS, read_by=way)
            with pytest.raises(LogprobsUnavailableError, match=r"several tokens|does not honour"):
                await read(engine, PROMPT, TWINS, read_by="label")


@pytest.mark.parametrize(
    ("way", "garble"),
    [("echo", "short"), *[(way, how) for way in ("echo", "trie") for how in ("nan", "equal", "other")]],
)
async def test_replies_that_cannot_be_right_are_refused(way: str, garble: str) -> None:
    with serving(Wire()) as wire:
        async with reaching(wire, needs=NEEDS) as engine:
            wire.garble = garble
            with pytest.raises(LogprobsUnavailableError, match=r"the reply was .*try program\.read_by="):
                await read(engine, PROMPT, TWINS, read_by=way)
