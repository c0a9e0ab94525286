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
    found = (await reply(engine, ask(prompt, more={"continuations": asked}))).logprobs
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
@pytest.mark.parametrize("way", ["echo", "auto"])
async def test_every_way_reads_the_models_numbers(way: str, length: int) -> None:
    prompt = ("Which organ pumps blood? " * 10)[:length]
    with serving(Wire(garble="texts" if way == "echo" else None, token_ids=way != "echo")) as wire:
        async with reaching(wire, needs=NEEDS) as engine:
            reading = await read(engine, prompt, TWINS, read_by=way)
    assert numbers(reading) == expected(wire, prompt, TWINS)
    assert reading.continuations[0].total == sum(expected(wire, prompt, TWINS)[0])
    assert reading.read_by == "echo"


async def test_labels_are_read_at_one_place() -> None:
    with serving(Wire()) as wire:
        async with reaching(wire, needs=NEEDS) as engine:
            labels = await read(engine, "Which?", (" 1", " 2", " 3"), given_opening=True)
    assert labels.read_by == "label"
    assert numbers(labels) == [one[1:] for one in expected(wire, "Which?", (" 1", " 2", " 3"))]
    assert len(wire.bodies(COMPLETIONS)) == 1


@pytest.mark.parametrize(
    ("texts", "way"), [(tuple(f"{n}bcdefghij" for n in range(5)), "echo"), (tuple(map(str, range(5))), "label")]
)
async def test_texts_are_echoed_and_single_tokens_read_at_one_place(texts: tuple[str, ...], way: str) -> None:
    with serving(Wire()) as wire:
        async with reaching(wire, needs=NEEDS) as engine:
            reading = await read(engine, "x" * 420, texts)
            echo = await read(engine, "x" * 420, texts, read_by="echo")
    assert reading.read_by == way
    assert numbers(reading) == numbers(echo) == expected(wire, "x" * 420, texts)
    assert echo.computed_tokens == sum(420 + len(text) for text in texts)
    assert reading.computed_tokens <= echo.computed_tokens


@pytest.mark.parametrize(("echo", "named"), [(True, False), (False, True)])
async def test_only_what_a_server_honours_is_used(echo: bool, named: bool) -> None:
    labels = (" 1", " 2", " 3")
    with serving(Wire(echo=echo, named=named)) as wire:
        async with reaching(wire, needs=NEEDS) as engine:
            reading = await read(engine, PROMPT, labels, given_opening=True)
            assert reading.read_by == ("echo" if echo else "label")
            assert numbers(reading) == [one[1:] for one in expected(wire, PROMPT, labels)]
            with pytest.raises(LogprobsUnavailableError, match="does not honour"):
                await read(engine, PROMPT, labels, read_by="label" if echo else "echo", given_opening=True)
            if not echo:
                with pytest.raises(LogprobsUnavailableError, match="no way to read log-probabilities of several"):
                    await read(engine, PROMPT, TWINS)


@pytest.mark.parametrize(
    ("way", "garble"),
    [
        ("echo", "short"),
        ("echo", "shifted"),
        *[(way, how) for way in ("echo", "label") for how in ("nan", "equal", "other")],
    ],
)
async def test_replies_that_cannot_be_right_are_refused(way: str, garble: str) -> None:
    texts, given = (TWINS, False) if way == "echo" else ((" 1", " 2", " 3"), True)
    with serving(Wire(token_ids=garble != "shifted")) as wire:
        async with reaching(wire, needs=NEEDS) as engine:
            wire.garble = garble
            with pytest.raises(LogprobsUnavailableError, match=r"the reply was .*try program\.read_by="):
                await read(engine, PROMPT, texts, read_by=way, given_opening=given)
