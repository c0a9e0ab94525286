"""Dialogues and generations as DSPy's requests and responses, and back.

Adapters and engines of ours know the first two alone. DSPy, and engines and models of one's own, know the others.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, cast

from dspy.lm15 import (
    Config,
    DocumentPart,
    FinishReason,
    ImagePart,
    Message,
    RefusalPart,
    Request,
    Response,
    StreamDeltaEvent,
    TextDelta,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
    response_to_events,
)
from pydantic import ValidationError

from medexam.dspy_internals import chat_request_fields
from medexam.errors import InvalidRequestError
from medexam.model_calls import (
    ChatMessage,
    ContinuationLogprobs,
    ContinuationRequest,
    Dialogue,
    Ending,
    Generation,
    Sampling,
    ToolCall,
    join_thinking,
)

CHOICE = "choice"
"""Key of `Request.config.extensions` that holds the strings the reply is chosen from."""
CONTINUATIONS = "continuations"
"""Key of `Request.config.extensions` that holds a `ContinuationRequest`, and of `Response.provider_data` that holds
the `ContinuationLogprobs` which answers it."""
PLAIN = "plain"
"""Key of `Request.config.extensions` that is true where the reply continues plain text."""
SAMPLES = "samples"
"""Key of `Request.config.extensions` that holds the number of replies, and of `Response.provider_data` that holds the
others than the first as data: `text`, `thinking`, `refusal`, `finish_reason`, `written_reason` (as the server wrote
it), `completion_tokens` and `thinking_tokens`."""
FINISH_REASON = "finish_reason"
"""Key of `Response.provider_data` that holds the finish reason as the server wrote it."""
UNSEEDED = "unseeded"
"""Key of `Response.provider_data` that is true where the model takes no seed, so that none was sent."""
DRAWN_SEED = "drawn_seed"
"""Key of `Response.provider_data` that holds the seed that a reply was drawn under, where it is not the one that was
asked for."""
PLACE = "place"
"""Key of `Response.provider_data` that holds a reply's place among the kept calls of its question."""

MOST_TOKENS = 10**9
"""More than any context holds: a larger count of tokens is a server's fault, and counts as not reported."""
_FILE = re.compile(r"\x00(\d+)\x00")
_PIECE = 16
"""Characters of a piece of a streamed reply, a few tokens."""
_ROLES = {"user": "user", "assistant": "assistant", "developer": "system", "tool": "tool"}
_SAMPLING = (
    *("max_tokens", "temperature", "top_p", "top_k", "seed", "stop"),
    *("frequency_penalty", "presence_penalty"),
)
"""Fields of a request's config that a `Sampling` has."""
_CHAT_FIELDS = frozenset({*_SAMPLING, "messages", "max_completion_tokens"})
"""What a dialogue says of a request in OpenAI's chat dialect, without its further fields."""
_REASONS: Mapping[Ending, FinishReason] = {
    Ending.COMPLETE: "stop",
    Ending.CUT: "length",
    Ending.REFUSED: "content_filter",
    Ending.FILTERED: "content_filter",
    Ending.ABORTED: "error",
}


def build_request(model: str, dialogue: Dialogue) -> Request:
    """Build DSPy's request of a dialogue of texts and pictures; what engines alone know stands in its extensions.

    An empty system turn is a part without words: a request takes no empty text for it.
    """
    turns = dialogue.turns_with_opening
    system = next((turn["content"] for turn in turns if turn["role"] == "system"), None)
    messages = [_message(turn["role"], turn["content"]) for turn in turns if turn["role"] != "system"]
    if dialogue.pictures:
        last = max(place for place, message in enumerate(messages) if message.role == "user")
        messages[last] = Message.user([*map(_image, dialogue.pictures), *messages[last].parts])
    extensions: dict[str, Any] = {} if dialogue.choices is None else {CHOICE: list(dialogue.choices)}
    if dialogue.continuations is not None:
        extensions[CONTINUATIONS] = dialogue.continuations.model_dump(mode="json")
    if dialogue.plain:
        extensions[PLAIN] = True
    if dialogue.sampling.samples > 1:
        extensions[SAMPLES] = dialogue.sampling.samples
    return Request(
        model=model,
        system=[TextPart("")] if system == "" else system,
        messages=tuple(messages),
        config=Config(**dialogue.sampling.fields(), extensions=extensions or None),
    )


# Instructions and demonstrations stand in every request of a run.
@lru_cache(maxsize=128)
def _message(role: str, content: str) -> Message:
    return {"user": Message.user, "assistant": Message.assistant}[role](content)


def _image(data_url: str) -> ImagePart:
    kind, _, data = data_url.removeprefix("data:").partition(";base64,")
    return ImagePart(media_type=kind, data=data)


def send_request(model: str, dialogue: Dialogue) -> Request:
    """Return the request that a dialogue was read from, under its seed, or else build it."""
    if not isinstance(dialogue.source, Request):
        return build_request(model, dialogue)
    config = dialogue.source.config
    if config.seed == dialogue.sampling.seed:
        return dialogue.source
    return replace(dialogue.source, config=replace(config, seed=dialogue.sampling.seed))


def read_dialogue(request: Request) -> Dialogue:
    """Read what a request asks; raises `InvalidRequestError` if it leaves nothing to answer."""
    config, extensions = request.config, dict(request.config.extensions or {})
    choices = _read_choices(extensions.pop(CHOICE, None))
    continuations = _read_continuations(extensions.pop(CONTINUATIONS, None))
    is_plain, samples = extensions.pop(PLAIN, False) is True, extensions.pop(SAMPLES, 1)
    settings = {name: getattr(config, name) for name in _SAMPLING}
    # Where the reply is chosen, a server takes pictures before the words alone.
    pictures, words_alone = _read_pictures(request, anywhere=choices is not None)
    chat: Mapping[str, Any] = {}
    if not words_alone or request.tools or extensions or _has_more(config):
        chat = _chat_fields(replace(request, config=replace(config, extensions=extensions or None)))
    messages = request_turns(request)
    opening = messages.pop()["content"] if words_alone and messages[-1]["role"] == "assistant" else ""
    if not any(message["role"] in ("user", "tool") for message in messages):
        raise InvalidRequestError("the request has no user turn to answer")
    return Dialogue(
        messages=messages,
        opening=opening,
        sampling=Sampling.of({**settings, "samples": samples}),
        choices=choices,
        continuations=continuations,
        pictures=pictures,
        plain=is_plain,
        fields={name: value for name, value in chat.items() if name not in _CHAT_FIELDS},
        turns=None if words_alone else chat["messages"],
        source=request,
    )


def stream_response(response: Response) -> Iterator[Any]:
    """Yield the events of a reply that came whole.

    Its text comes in pieces as a server's does: a listener of DSPy's misses a field that begins and ends in one piece.
    """
    for event in response_to_events(response):
        delta = event.delta if isinstance(event, StreamDeltaEvent) else None
        if not isinstance(delta, TextDelta) or delta.logprobs:
            yield event
            continue
        for begin in range(0, len(delta.text), _PIECE):
            yield replace(event, delta=replace(delta, text=delta.text[begin : begin + _PIECE]))


def _chat_fields(request: Request) -> dict[str, Any]:
    """Return a request's fields in OpenAI's chat dialect, with the files that DSPy does not write there."""
    files: list[DocumentPart] = []

    def mark(part: Any) -> Any:
        if not isinstance(part, DocumentPart) or part.data is None:
            return part
        files.append(part)
        return TextPart(f"\0{len(files) - 1}\0")

    def write_files(content: Any) -> list[Any]:
        parts: list[Any] = []
        for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            # Every other piece is the place of a file.
            for number, text in enumerate(_FILE.split(part["text"]) if part["type"] == "text" else ()):
                file = files[int(text)] if number % 2 else None
                data = {} if file is None else {"file_data": f"data:{file.media_type};base64,{file.data}"}
                parts += [{"type": "file", "file": data}] if data else [{"type": "text", "text": text}] * bool(text)
            parts += [part] if part["type"] != "text" else []
        return parts

    messages = tuple(replace(one, parts=tuple(map(mark, one.parts))) for one in request.messages)
    chat = chat_request_fields(replace(request, messages=messages))
    if files:
        chat["messages"] = [{**turn, "content": write_files(turn["content"])} for turn in chat["messages"]]
    return chat


def _has_more(config: Config) -> bool:
    """Return whether a request's config says more than how its reply is drawn."""
    names = (field.name for field in fields(config) if field.name not in (*_SAMPLING, "extensions"))
    return any(getattr(config, name) not in (None, ()) for name in names)


def _read_choices(choices: Any) -> tuple[str, ...] | None:
    if choices is None:
        return None
    strings = isinstance(choices, list) and all(isinstance(choice, str) and choice for choice in choices)
    if not strings or not choices or len(set(choices)) < len(choices):
        raise InvalidRequestError(f"{CHOICE!r} must be a list of distinct strings, not {choices!r}")
    return tuple(choices)


def _read_continuations(continuations: Any) -> ContinuationRequest | None:
    if continuations is None:
        return None
    try:
        return ContinuationRequest.model_validate(continuations)
    except ValidationError as error:
        raise InvalidRequestError(f"{CONTINUATIONS!r}: {error.errors()[0]['msg']}") from None


def _read_pictures(request: Request, *, anywhere: bool) -> tuple[tuple[str, ...], bool]:
    """Return the pictures before the words of the last user message as data URLs, and whether all else is words."""
    last_user = max((place for place, message in enumerate(request.messages) if message.role == "user"), default=None)
    pictures: list[str] = []
    others = [] if isinstance(request.system, str | None) else [*request.system]
    for place, message in enumerate(request.messages):
        parts = [*message.parts]
        if anywhere:
            parts.sort(key=lambda part: not isinstance(part, ImagePart))
        while place == last_user and parts and isinstance(parts[0], ImagePart) and parts[0].data is not None:
            picture = parts.pop(0)
            pictures.append(f"data:{picture.media_type};base64,{picture.data}")
        others += parts
    words_alone = all(isinstance(part, TextPart) for part in others)
    return tuple(pictures) if words_alone else (), words_alone


def request_turns(request: Request) -> list[ChatMessage]:
    """Return the turns of a request as texts, the system's first; calls of tools and their results are lines."""
    turns = [{"role": _ROLES[message.role], "content": _words(message.parts)} for message in request.messages]
    if request.system is not None:
        system = request.system if isinstance(request.system, str) else "\n".join(map(_text, request.system))
        turns.insert(0, {"role": "system", "content": system})
    return turns


def _text(part: Any) -> str:
    return part.text if isinstance(part, TextPart) else ""


def _words(parts: Sequence[Any]) -> str:
    """Return the words of a turn; a tool's call is its name and its arguments as JSON, a line each."""
    words = "".join(map(_text, parts))
    calls = [f"{part.name} {json.dumps(part.input)}" for part in parts if isinstance(part, ToolCallPart)]
    results = [_words(part.content) for part in parts if isinstance(part, ToolResultPart)]
    return "\n".join(filter(None, [words, *calls, *results]))


def write_response(generations: Sequence[Generation], *, takes_seed: bool = True) -> Response:
    """Write the replies to one request as DSPy's response; `takes_seed`: whether the model draws under a seed."""
    first, *others = generations
    extras: dict[str, Any] = {FINISH_REASON: first.finish_reason}
    if first.place is not None:
        extras[PLACE] = first.place
    if first.reading is not None:
        extras[CONTINUATIONS] = first.reading.model_dump(mode="json")
    if others:
        extras[SAMPLES] = list(map(_write_sample, others))
    if first.seed is not None:
        extras[DRAWN_SEED] = first.seed
    elif not takes_seed:
        extras[UNSEEDED] = True
    if isinstance(first.source, Response):
        usage = replace(first.source.usage, reasoning_tokens=first.thinking_tokens)
        provider_data = {**(first.source.provider_data or {}), **extras}
        return replace(first.source, model=first.model, usage=usage, provider_data=provider_data)
    return Response(
        id=None,
        model=first.model,
        message=_write_message(first),
        finish_reason=_REASONS[first.ending],
        usage=Usage(
            input_tokens=first.prompt_tokens,
            output_tokens=first.completion_tokens,
            reasoning_tokens=first.thinking_tokens,
        ),
        provider_data=extras,
    )


def _write_message(generation: Generation) -> Message:
    thinking = [ThinkingPart(generation.thinking)] if generation.thinking else []
    calls = [ToolCallPart(call.id, call.name, call.args) for call in generation.tool_calls]
    refusal = [RefusalPart(generation.reply or "")] if generation.refused else []
    others = [*calls, *refusal]
    words = [TextPart(generation.words)] if generation.words or not others else []
    return Message.assistant(cast("Any", [*thinking, *words, *others]))


def _write_sample(generation: Generation) -> dict[str, Any]:
    return {
        "text": generation.words,
        "thinking": generation.thinking,
        "refusal": generation.reply if generation.refused else None,
        "finish_reason": _REASONS[generation.ending],
        "written_reason": generation.finish_reason,
        "completion_tokens": generation.completion_tokens,
        "thinking_tokens": generation.thinking_tokens,
        "place": generation.place,
    }


def read_generations(response: Response, dialogue: Dialogue, seed: int | None = None) -> list[Generation]:
    """Read the replies to a dialogue; `seed`: the one that the first was to be drawn under, None if none was drawn."""
    extras = response.provider_data or {}
    reading = ContinuationLogprobs.model_validate(extras[CONTINUATIONS]) if dialogue.continuations else None
    seed = None if extras.get(UNSEEDED) or seed is None else extras.get(DRAWN_SEED, seed)
    return [
        replace(read_generation(sample), reading=reading, seed=None if seed is None else seed + number)
        for number, sample in enumerate(split_samples(response))
    ]


def split_samples(response: Response) -> list[Response]:
    """Split a response into its replies, each as a response; those that shared the first one's prompt read none."""
    others = (response.provider_data or {}).get(SAMPLES) or ()
    return [response, *(_read_sample(response, data) for data in others)]


def _read_sample(first: Response, data: Mapping[str, Any]) -> Response:
    thinking = [ThinkingPart(data["thinking"])] if data["thinking"] else []
    usage = Usage(input_tokens=0, output_tokens=data["completion_tokens"], reasoning_tokens=data["thinking_tokens"])
    refusal = [RefusalPart(data["refusal"])] if data.get("refusal") else []
    message = Message.assistant([*thinking, TextPart(data["text"]), *refusal])
    provider_data = {FINISH_REASON: data.get("written_reason"), PLACE: data.get("place")}
    return replace(
        first, message=message, finish_reason=data["finish_reason"], usage=usage, provider_data=provider_data
    )


def read_generation(response: Response) -> Generation:
    """Read the reply of a response."""
    parts = response.message.parts
    text = "".join(map(_text, parts))
    thinking = "".join(part.text for part in parts if isinstance(part, ThinkingPart))
    refusal = "".join(part.text for part in parts if isinstance(part, RefusalPart))
    return Generation(
        reply=join_thinking(thinking, text or refusal) if thinking else text or refusal,
        finish_reason=(response.provider_data or {}).get(FINISH_REASON) or response.finish_reason,
        model=response.model,
        prompt_tokens=_count(response.usage.input_tokens),
        completion_tokens=_count(response.usage.output_tokens),
        thinking_tokens=_count(response.usage.reasoning_tokens),
        refused=bool(refusal),
        place=(response.provider_data or {}).get(PLACE),
        text=text if thinking or refusal else None,
        thinking=thinking or None,
        tool_calls=tuple(
            ToolCall(id=part.id, name=part.name, args=part.input) for part in parts if isinstance(part, ToolCallPart)
        ),
        source=response,
    )


def _count(tokens: int | None) -> int | None:
    """Return the number of tokens that a server reports; None where it reports none, or one that cannot be."""
    return tokens if isinstance(tokens, int) and 0 <= tokens <= MOST_TOKENS else None
