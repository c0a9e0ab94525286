"""Turns, merging, probing and stop strings."""

from itertools import pairwise

import pytest
from dspy.lm15 import Config, ImagePart, Message, Request, TextPart, ThinkingPart

from medexam.dspy_requests import read_dialogue
from medexam.errors import InvalidRequestError, UnsupportedFeatureError
from medexam.serve.chat_messages import TemplateRules, cut_at_stop, probe_template, template_digest, tool_turns


def message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


S, U, V, A = message("system", "S"), message("user", "U"), message("user", "V"), message("assistant", "A")
EMPTY = message("system", "")


def request(*messages: Message, system=None, **options) -> Request:
    return Request(model="m", messages=messages, system=system, config=Config(**options))


@pytest.mark.parametrize(
    ("asked", "messages", "prefill"),
    [
        (request(Message.user("U")), [U], ""),
        (request(Message.user("U"), system="S"), [S, U], ""),
        (request(Message.user("U"), system=(TextPart("S"), TextPart("T"))), [message("system", "S\nT"), U], ""),
        (request(Message.user("U"), Message.assistant("Answer: ")), [U], "Answer: "),
        (request(Message.user("U"), Message.assistant("A"), Message.user("V")), [U, A, V], ""),
        (request(Message.user("U"), Message.developer("S"), Message.user("V")), [U, S, V], ""),
    ],
)
def test_a_request_is_messages_and_an_opening(asked, messages, prefill) -> None:
    dialogue = read_dialogue(asked)
    assert (dialogue.messages, dialogue.opening, dialogue.turns) == (messages, prefill, None)


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (request(Message.assistant("A")), InvalidRequestError),
        (request(Message.user([TextPart("U"), ImagePart(url="http://x/y.png")])), UnsupportedFeatureError),
        (request(Message.user("U"), Message.assistant([TextPart("A"), ThinkingPart("T")])), UnsupportedFeatureError),
    ],
)
def test_what_has_no_messages_is_refused(asked, error) -> None:
    with pytest.raises(error):
        tool_turns(read_dialogue(asked))


@pytest.mark.parametrize(
    ("messages", "merged"),
    [
        ([U], [U]),
        ([S, U], [message("user", "S\n\nU")]),
        ([S, U, A, V], [message("user", "S\n\nU"), A, V]),
        ([U, V], [message("user", "U\n\nV")]),
        ([U, S, V], [message("user", "U\n\nS\n\nV")]),
        ([S, A, U], [message("user", "S"), A, U]),
    ],
)
def test_merging_keeps_every_word(messages, merged) -> None:
    before = [dict(t) for t in messages]
    assert TemplateRules(system=False, repeats=False, empty_system=True).fit(messages) == merged
    assert messages == before


def test_joining_keeps_the_system_message() -> None:
    assert TemplateRules(system=True, repeats=False, empty_system=True).fit([S, U, V, A]) == [
        S,
        message("user", "U\n\nV"),
        A,
    ]


class Refusal(Exception):
    pass


def plain(messages) -> str:
    return "".join(f"[{t['role']}]{t['content']}" for t in messages)


def no_system(messages) -> str:
    if any(t["role"] == "system" for t in messages):
        raise Refusal
    return plain(messages)


def no_empty(messages) -> str:
    if any(not t["content"] for t in messages):
        raise Refusal
    return plain(messages)


def alternating(messages) -> str:
    if any(a["role"] == b["role"] for a, b in pairwise(messages)):
        raise Refusal
    return no_system(messages)


def silent(messages) -> str:
    return plain(t for t in messages if t["role"] != "system")


@pytest.mark.parametrize(
    ("render", "rules"),
    [
        (plain, TemplateRules(system=True, repeats=True, empty_system=True)),
        (no_system, TemplateRules(system=False, repeats=True, empty_system=False)),
        (alternating, TemplateRules(system=False, repeats=False, empty_system=False)),
        (silent, TemplateRules(system=False, repeats=True, empty_system=True)),
        (no_empty, TemplateRules(system=True, repeats=True, empty_system=False)),
    ],
)
def test_probe_template(render, rules) -> None:
    assert probe_template(render, Refusal) == rules
    fitted = render(rules.fit([S, U, V, A]))
    assert all(word in fitted for word in "SUVA")


@pytest.mark.parametrize(
    ("rules", "fitted"),
    [
        ((True, True, True), [EMPTY, U, V]),
        ((True, True, False), [U, V]),
        ((True, False, True), [EMPTY, message("user", "U\n\nV")]),
        ((True, False, False), [message("user", "U\n\nV")]),
        ((False, True, True), [U, V]),
        ((False, False, False), [message("user", "U\n\nV")]),
    ],
)
def test_an_empty_system_message_and_two_user_messages_lose_no_word(rules, fitted) -> None:
    system, repeats, empty_system = rules
    assert TemplateRules(system=system, repeats=repeats, empty_system=empty_system).fit([EMPTY, U, V]) == fitted


def test_a_refused_system_message_opens_the_first_user_message_alone() -> None:
    rules = TemplateRules(system=False, repeats=True, empty_system=False)
    assert rules.fit([S, U, V]) == [message("user", "S\n\nU"), V]


def test_rules_leave_accepted_messages_alone() -> None:
    assert TemplateRules(system=True, repeats=True, empty_system=True).fit([S, U, V]) == [S, U, V]


@pytest.mark.parametrize(
    ("text", "stops", "cut"),
    [
        ("abcabc", (), ("abcabc", False)),
        ("abcabc", ("x",), ("abcabc", False)),
        ("abcabc", ("c", "b"), ("a", True)),
        ("abc", ("a",), ("", True)),
    ],
)
def test_cut_at_stop(text, stops, cut) -> None:
    assert cut_at_stop(text, stops) == cut


def test_choices_are_distinct_strings() -> None:
    assert read_dialogue(request(Message.user("U"))).choices is None
    assert read_dialogue(request(Message.user("U"), extensions={"choice": ["1", "2"]})).choices == ("1", "2")
    for wrong in ([], ["1", "1"], ["1", ""], [1, 2], "12", {"1": "2"}):
        with pytest.raises(InvalidRequestError, match="distinct strings"):
            read_dialogue(request(Message.user("U"), extensions={"choice": wrong}))


def test_template_digest_is_sha256() -> None:
    assert template_digest("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
