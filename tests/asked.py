"""An engine asked by DSPy's requests, and what a scripted engine was asked as such requests.

A request says in its extensions what DSPy has no field for: the strings that the reply is one of, texts to be weighed,
a plain text to be continued, and the number of replies.
"""

from collections.abc import Sequence
from typing import Any

from dspy.lm15 import Config, ImagePart, Message, RefusalPart, Request, Response, TextPart, ThinkingPart, Usage

from medexam.model_calls import ContinuationRequest, Dialogue, Ending, Generation, Sampling

CHOICE, CONTINUATIONS, PLAIN, SAMPLES = "choice", "continuations", "plain", "samples"
FINISH = {Ending.COMPLETE: "stop", Ending.CUT: "length", Ending.ABORTED: "error"}


async def complete(engine: Any, request: Request) -> Response:
    """Return the engine's reply to a request."""
    return write_response(await engine.reply(read_dialogue(request)))


def complete_blocking(engine: Any, request: Request) -> Response:
    """Return the reply of its synchronous twin."""
    return write_response(engine.sync.reply(read_dialogue(request)))


def requests_of(engine: Any) -> list[Request]:
    """Return what a scripted engine was asked, in order."""
    return list(map(as_request, engine.dialogues))


def read_dialogue(request: Request) -> Dialogue:
    """Return the dialogue of a request of texts and pictures."""
    config, more = request.config, dict(request.config.extensions or {})
    system = [] if request.system is None else [{"role": "system", "content": _system_words(request)}]
    turns = system + [{"role": message.role, "content": message.text} for message in request.messages]
    weighed = more.get(CONTINUATIONS)
    return Dialogue.of(
        turns,
        Sampling(
            max_tokens=config.max_tokens,
            temperature=config.temperature,
            top_p=config.top_p,
            top_k=config.top_k,
            seed=config.seed,
            stop=tuple(config.stop or ()),
            samples=more.get(SAMPLES, 1),
        ),
        choices=tuple(more[CHOICE]) if CHOICE in more else None,
        continuations=None if weighed is None else ContinuationRequest.model_validate(weighed),
        plain=more.get(PLAIN, False),
        pictures=tuple(
            f"data:{part.media_type};base64,{part.data}"
            for message in request.messages
            for part in message.parts
            if isinstance(part, ImagePart)
        ),
    )


def _system_words(request: Request) -> str:
    return request.system if isinstance(request.system, str) else "\n".join(part.text for part in request.system)


def as_request(dialogue: Dialogue) -> Request:
    """Return a dialogue as DSPy's request; an empty system turn is a part without words."""
    turns = dialogue.turns_with_opening
    system = next((turn["content"] for turn in turns if turn["role"] == "system"), None)
    write = {"user": Message.user, "assistant": Message.assistant}
    more: dict[str, Any] = {} if dialogue.choices is None else {CHOICE: list(dialogue.choices)}
    if dialogue.continuations is not None:
        more[CONTINUATIONS] = dialogue.continuations.model_dump(mode="json")
    more |= {PLAIN: True} if dialogue.plain else {}
    more |= {SAMPLES: dialogue.sampling.samples} if dialogue.sampling.samples > 1 else {}
    return Request(
        model="medexam/scripted",
        system=[TextPart("")] if system == "" else system,
        messages=tuple(write[turn["role"]](turn["content"]) for turn in turns if turn["role"] != "system"),
        config=Config(**dialogue.sampling.fields(), extensions=more or None),
    )


def write_response(generations: Sequence[Generation]) -> Response:
    """Return the replies to one request as DSPy's response."""
    first = generations[0]
    thinking = [ThinkingPart(first.thinking)] if first.thinking else []
    words = [RefusalPart(first.reply or "")] if first.refused else [TextPart(first.words)]
    extras: dict[str, Any] = {"generations": list(generations)}
    if first.reading is not None:
        extras[CONTINUATIONS] = first.reading.model_dump(mode="json")
    return Response(
        id=None,
        model=first.model,
        message=Message.assistant([*thinking, *words]),
        finish_reason=FINISH.get(first.ending, "content_filter"),
        usage=Usage(
            input_tokens=first.prompt_tokens,
            output_tokens=first.completion_tokens,
            reasoning_tokens=first.thinking_tokens,
        ),
        provider_data=extras,
    )


def read_generation(response: Response) -> Generation:
    """Return the engine's reply in a response, the first of several."""
    return response.provider_data["generations"][0]


def split_samples(response: Response) -> list[Response]:
    """Return a response for each of its replies."""
    return [write_response([one]) for one in response.provider_data["generations"]]
