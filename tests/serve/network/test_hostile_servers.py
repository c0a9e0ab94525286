"""Replies without end, without sense, and with numbers and texts that fit nowhere: each is a fault in one line."""

import time

import pytest
from engine_calls import ask, reaching, reply
from hostile_server import HostileWire
from wire_server import serving

from medexam.errors import CallError, CallTimeoutError, ServerError
from medexam.model_calls import Ending, Generation
from medexam.serve import TIMING
from waiting import BACKSTOP_S

HELLO, OPENED = ask("Hello"), ask("Hello", opening="{Answer: ")
LONGEST = 2500
"""More characters than a fault may have."""


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TIMING, "attempts", 2)


async def answer(how: str, asked=HELLO, timeout_s: float = BACKSTOP_S) -> Generation:
    """The reply of a server that answers in this way once it was probed."""
    with serving(HostileWire()) as wire:
        async with reaching(wire, timeout_s=timeout_s) as engine:
            wire.how = how
            return await reply(engine, asked)


@pytest.mark.parametrize(
    ("how", "fault"),
    [
        ("drip", CallTimeoutError),
        *[(how, CallError) for how in ("deep", "page", "list", "empty object", "null", "large id")],
        ("infinite", ServerError),
    ],
)
async def test_what_is_no_reply_is_a_fault_in_one_line(how: str, fault: type[CallError]) -> None:
    begun = time.monotonic()
    with pytest.raises(fault) as caught:
        await answer(how, timeout_s=2.0 if fault is CallTimeoutError else BACKSTOP_S)
    assert "Traceback" not in str(caught.value)
    assert len(str(caught.value)) < LONGEST
    assert time.monotonic() - begun < BACKSTOP_S


@pytest.mark.parametrize("how", ["abort", "error", "unknown end"])
@pytest.mark.parametrize("asked", [HELLO, OPENED], ids=["chat", "completions"])
async def test_a_reply_that_was_broken_off_is_a_fault(how: str, asked) -> None:
    with pytest.raises(ServerError, match="was interrupted"):
        await answer(how, asked)


@pytest.mark.parametrize(
    ("how", "reply", "ending", "written"),
    [
        ("null content", "", Ending.COMPLETE, "stop"),
        ("refused", "I cannot help.", Ending.REFUSED, "stop"),
        ("filtered", "", Ending.FILTERED, "content_filter"),
        ("cut", "hello", Ending.CUT, "max_tokens"),
    ],
)
async def test_a_reply_ends_as_the_server_says(how: str, reply: str, ending: Ending, written: str) -> None:
    found = await answer(how)
    assert (found.text, found.ending, found.finish_reason) == (reply, ending, written)
    assert found.withheld is (ending in (Ending.REFUSED, Ending.FILTERED))


@pytest.mark.parametrize("how", ["ids", "texts"])
async def test_texts_and_token_ids_of_another_type_are_a_fault_in_one_line(how: str) -> None:
    with pytest.raises(ServerError, match=r"cannot be read|not be as expected"):
        await answer(how, OPENED)


@pytest.mark.parametrize("how", ["large usage", "negative usage"])
async def test_a_reply_is_kept_without_numbers_that_cannot_be(how: str) -> None:
    found = await answer(how)
    assert (found.text, found.prompt_tokens, found.completion_tokens) == ("hello", None, None)


async def test_half_a_surrogate_pair_is_kept_as_its_escape() -> None:
    assert (await answer("surrogate")).text == "{Answer: 1} \\ud800 \x1b[31mred"
    assert (await answer("name")).model.startswith("\x1b[31m\\ud800")
