"""An engine: a class that answers DSPy's requests, made with `model.args`."""

from dspy.lm15 import Message, Request, Response, Usage

from medexam.dspy_requests import CHOICE
from medexam.model_identity import ModelIdentity
from medexam.serve import EngineInfo


class Echo:
    """Says the same to everything; of given choices it takes the one of that place."""

    concurrency = 8

    def __init__(self, text: str = "1", place: int = 0) -> None:
        self._text, self._place = text, place

    async def complete(self, request: Request) -> Response:
        """One reply to one request."""
        choices = (request.config.extensions or {}).get(CHOICE)
        text = choices[min(self._place, len(choices) - 1)] if choices else self._text
        return Response(
            id=None,
            model="echo",
            message=Message.assistant(text),
            finish_reason="stop",
            usage=Usage(input_tokens=0, output_tokens=len(text.split())),
        )

    def info(self) -> EngineInfo:
        """Describe what really runs; `guided_by` says that it keeps to given choices."""
        identity = ModelIdentity(engine="echo", name="echo")
        return EngineInfo(engine="echo", model="echo", identity=identity, guided_by="next_token")

    async def aclose(self) -> None:
        """Nothing to release."""
