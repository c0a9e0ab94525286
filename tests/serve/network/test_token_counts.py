"""Servers that ignore a limit of tokens, drop a system message or cut a prompt, and answer all the same."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from engine_calls import CHAT, ask, reaching, reply, spec_of
from wire_server import Wire, serving

import medexam
from table_cases import read_table

OLDER, NEWER = "max_tokens", "max_completion_tokens"
ASKED = ask("?", system="Be brief.")


@dataclass
class LaxWire(Wire):
    """A server without `/tokenize` that reads `limits` alone, and shows its model less than it was sent."""

    version: str | None = None
    owner: str | None = "tiny"
    tokenize: bool = False
    limits: tuple[str, ...] = (OLDER, NEWER)
    drops: bool = False
    """Leave system messages out."""
    cuts: int | None = None
    """The most characters of a prompt that the model reads."""
    counts: bool = True
    """Count tokens."""

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if self.drops and "messages" in body:
            body = {**body, "messages": [turn for turn in body["messages"] if turn["role"] != "system"]}
        status, reply = super().reply(path, body)
        if path != CHAT or status != 200:
            return status, reply
        written = min([60, *(body[name] for name in self.limits if body.get(name))])
        for choice in reply["choices"]:
            # Only replies to what is counted are long.
            if choice["message"]["content"] == "hello":
                choice["message"]["content"] = " ".join(["seventeen"] * written)
        usage = reply["usage"]
        usage |= {"completion_tokens": written, "prompt_tokens": min(usage["prompt_tokens"], self.cuts or 10**6)}
        return status, reply if self.counts else {**reply, "usage": None}


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("field", [OLDER, NEWER])
@pytest.mark.parametrize("refuses", [True, False])
async def test_the_limit_that_a_server_reads_is_the_one_that_is_sent(counts, field, refuses) -> None:
    other = NEWER if field == OLDER else OLDER
    with serving(LaxWire(limits=(field,), counts=counts, refused_fields=(other,) if refuses else ())) as wire:
        async with reaching(wire) as built:
            assert len((await reply(built, ASKED)).words.split()) == 8
            assert built.info().details["warnings"] == []
    (body,) = wire.bodies(CHAT)
    assert (body.get(field), body.get(other)) == (8, None)


@pytest.mark.parametrize(
    ("wire", "said"),
    [(LaxWire(limits=()), "ignores max_tokens and max_completion_tokens"), (LaxWire(drops=True), None)],
)
async def test_what_a_server_ignores_is_told(wire: LaxWire, said: str | None) -> None:
    with serving(wire):
        async with reaching(wire) as built:
            await reply(built, ASKED)
            info = built.info()
    if said:
        assert f"{wire.address} {said}" in info.details["warnings"][0]
    else:
        assert info.system_turn == "merged"


@pytest.mark.parametrize(
    ("wire", "messages"),
    [
        (LaxWire(drops=True), [{"role": "user", "content": "Be brief.\n\n?"}]),
        (LaxWire(), ASKED.messages),
        (LaxWire(drops=True, counts=False), ASKED.messages),
    ],
    ids=["it costs no tokens", "kept", "not counted"],
)
async def test_a_system_message_opens_the_users_only_if_tokens_show_that_it_is_dropped(
    wire: LaxWire, messages: list[dict[str, str]]
) -> None:
    with serving(wire):
        async with reaching(wire) as built:
            await reply(built, ASKED)
    assert wire.bodies(CHAT)[-1]["messages"] == messages


@pytest.mark.parametrize("cuts", [300, None])
def test_a_run_says_at_how_many_tokens_a_server_cuts_prompts(cuts: int | None, tmp_path: Path, caplog):
    spec = {"name": "cut", "dataset": {"name": "headqa_sample", "language": "en", "limit": 30}, "program": "zero_shot"}
    with serving(LaxWire(cuts=cuts)) as wire, caplog.at_level(logging.WARNING):
        model = spec_of(wire).model_dump(mode="json", exclude_defaults=True)
        (run,) = medexam.run({**spec, "model": model}, runs_dir=tmp_path, progress=False, track=False)
    said = "it cuts prompts there without saying so"
    report = (run.folder / "report.md").read_text(encoding="utf-8")
    assert (said in report, sum(said in record.message for record in caplog.records)) == (bool(cuts), int(bool(cuts)))
    if cuts:
        (warning,) = run.stored.warnings
        assert warning.startswith("the server counted 300 tokens for each of ")


class Totals(Wire):
    """A server that leaves out of its counts what `usage` says None of."""

    usage: dict[str, int | None] | None = None

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        status, document = super().reply(path, body)
        return status, document | {"usage": self.usage} if path == CHAT and self.usage else document


@pytest.mark.parametrize(*read_table("missing_counts"))
async def test_a_count_that_is_missing_follows_from_the_total(prompt, completion, total, counts) -> None:
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}
    with serving(Totals()) as wire:
        async with reaching(wire) as built:
            wire.usage = {name: count for name, count in usage.items() if count is not None}
            said = await reply(built, ASKED)
    assert [said.prompt_tokens, said.completion_tokens] == counts
