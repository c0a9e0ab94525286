"""DSPy's requests asked of an engine, and those that a scripted one was asked."""

from typing import Any

from dspy.lm15 import Request, Response

from medexam.dspy_requests import read_dialogue, send_request, write_response
from medexam.model_calls import Dialogue


async def complete(engine: Any, request: Request) -> Response:
    """Return the engine's reply to a request."""
    return write_response(await engine.reply(read_dialogue(request)))


def complete_blocking(engine: Any, request: Request) -> Response:
    """Return the reply of its synchronous twin."""
    return write_response(engine.sync.reply(read_dialogue(request)))


def requests_of(engine: Any) -> list[Request]:
    """Return what a scripted engine was asked, in order."""
    return list(map(as_request, engine.dialogues))


def as_request(dialogue: Dialogue) -> Request:
    """Return a dialogue as DSPy's request."""
    return send_request("medexam/scripted", dialogue)
