"""DSPy's chat adapter in bulk asks and reads as DSPy's own does, call by call."""

import asyncio
from typing import Literal

import dspy
import pytest
from dspy.utils.exceptions import AdapterParseError

from medexam.model_calls import Generation
from medexam.signatures.chat_in_bulk import ChatInBulk


class Judge(dspy.Signature):
    """Say whether a claim holds."""

    claim: str = dspy.InputField(desc="one sentence")
    sources: list[str] = dspy.InputField()
    holds: bool = dspy.OutputField()
    kind: Literal["a", "b"] = dspy.OutputField()


class Writer:
    """An engine that keeps the dialogues that it replies to."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.dialogues = []

    async def reply(self, dialogue):
        return Waiter.reply(self, dialogue)


class Waiter(Writer):
    """The same for those who wait in a thread."""

    def reply(self, dialogue):
        self.dialogues.append(dialogue)
        return [Generation(self.text, "stop", "m", 1, 1)]


class Echo:
    """DSPy's engine contract, for the other way."""

    def __init__(self, reply: str) -> None:
        self.reply = reply
        self.requests = []

    def complete(self, request):
        self.requests.append(request)
        usage = dspy.lm15.Usage(input_tokens=1, output_tokens=1)
        message = dspy.lm15.Message.assistant(self.reply)
        return dspy.lm15.Response(id="1", model="m", message=message, finish_reason="stop", usage=usage)


class Both:
    """Replies to dialogues, and to DSPy's requests."""

    def __init__(self, waiter: Waiter, echo: Echo) -> None:
        self.reply, self.complete = waiter.reply, echo.complete


class Asynchronous:
    def __init__(self, echo: Echo) -> None:
        self._echo = echo

    async def complete(self, request):
        return self._echo.complete(request)


def ask(adapter, lm, signature, inputs, demos=()):
    predictor = dspy.Predict(signature)
    predictor.demos = list(demos)
    with dspy.context(lm=lm, adapter=adapter, disable_history=True, trace=None):
        waits = isinstance(getattr(lm, "direct_engine", None), Waiter)
        return dict(predictor(**inputs) if waits else asyncio.run(predictor.acall(**inputs)))


@pytest.fixture(params=[Writer, Waiter], ids=["awaited", "blocking"])
def both(request):
    """Two models that reply the same: asked by dialogues, and by DSPy's requests."""

    def make(reply):
        echo, writer = Echo(reply), request.param(reply)
        settings = {"cache": False, "temperature": 0.0, "max_tokens": 9}
        lm = dspy.LM("m/m", engine=echo, async_engine=Asynchronous(echo), **settings)
        direct = dspy.LM("m/m", engine=Both(writer, echo), async_engine=Asynchronous(echo), **settings)
        direct.direct_engine = writer
        return lm, echo, direct, writer

    return make


def messages_of(request):
    turns = [("system", request.system if isinstance(request.system, str) else request.system[0].text)]
    return turns + [(message.role, "".join(part.text for part in message.parts)) for message in request.messages]


@pytest.mark.parametrize(
    ("signature", "inputs", "demos", "reply"),
    [
        ("question -> answer", {"question": "Why?"}, [], "[[ ## answer ## ]]\nBecause\n\n[[ ## completed ## ]]"),
        ("question -> answer: int", {"question": "x"}, [dspy.Example(question="y", answer=2)], "[[ ## answer ## ]]\n3"),
        (
            Judge,
            {"claim": "a", "sources": ["s", "t"]},
            [{"claim": "c", "sources": ["u"], "holds": True, "kind": "b"}],
            "[[ ## holds ## ]]\nfalse\n[[ ## kind ## ]]\na",
        ),
    ],
)
def test_messages_settings_and_outputs_are_dspys(both, signature, inputs, demos, reply) -> None:
    lm, echo, direct, writer = both(reply)
    theirs = ask(dspy.ChatAdapter(), lm, signature, inputs, demos)
    ours = ask(ChatInBulk(), direct, signature, inputs, demos)
    assert ours == theirs
    (request,), (dialogue,) = echo.requests, writer.dialogues
    assert [(turn["role"], turn["content"]) for turn in dialogue.messages] == messages_of(request)
    assert (dialogue.sampling.temperature, dialogue.sampling.max_tokens) == (0.0, 9)


def test_a_reply_that_does_not_parse_is_asked_again_as_dspy_does(both) -> None:
    lm, echo, direct, writer = both("nothing")
    for adapter, model in ((dspy.ChatAdapter(), lm), (ChatInBulk(), direct)):
        with pytest.raises(AdapterParseError):
            ask(adapter, model, "question -> answer", {"question": "x"})
    # DSPy's own asks twice, by chat and by JSON; the first of ours went to the writer.
    assert len(writer.dialogues) == 1
    assert len(echo.requests) % 3 == 0
    with pytest.raises(AdapterParseError):
        ask(ChatInBulk(use_json_adapter_fallback=False), direct, "question -> answer", {"question": "x"})


def test_who_listens_gets_dspys_own_call(both) -> None:
    _, echo, direct, writer = both("[[ ## answer ## ]]\nBecause")
    predictor = dspy.Predict("question -> answer")
    with dspy.context(lm=direct, adapter=ChatInBulk(), track_usage=True):
        asyncio.run(predictor.acall(question="x"))
        predictor(question="x")
    assert (len(echo.requests), writer.dialogues) == (2, [])
