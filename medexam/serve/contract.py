"""What every engine here promises, on top of DSPy's `complete(Request) -> Response`.

An engine knows messages, tokens and choices; it knows nothing of questions, exams or answers. Programs need four
conventions, and engines whose `shares_prompts` is true keep a fifth:

- a request whose last message is the assistant's continues that message: the reply is only what comes after it;
- `request.config.extensions["choice"]`, a list of distinct strings, makes the reply exactly one of them;
- `request.config.extensions["continuations"]`, a `medexam.model_calls.ContinuationRequest` as data, asks how likely
  texts are as what follows: `response.provider_data["continuations"]` is the `ContinuationLogprobs`, and the reply is
  the likeliest;
- `request.config.extensions["plain"]`, true, makes the one user message a plain text that the reply continues, without
  a chat template;
- `request.config.extensions["samples"]`, a number of 2 or more, asks for as many replies to the prompt, which is read
  once: the first under the request's seed, the others under the next ones. `response.provider_data["samples"]` holds
  the others as data: `text`, `thinking`, `refusal`, `finish_reason`, `written_reason` (as the server wrote it),
  `completion_tokens` and `thinking_tokens`; the first one's usage has the prompt's tokens.

An engine may declare what its model takes in the server's own form, under DSPy's names: `supports_function_calling`,
`supports_response_schema` and `supported_params`, names of OpenAI's fields. What it does not declare, DSPy's adapters
ask in words.

Failures are raised as `CallError`s, after the engine has retried what a retry may cure; a prompt that does not
fit the context is a `ContextLengthError`. Log-probabilities that a server does not give, or that cannot be
true, are a `medexam.errors.LogprobsUnavailableError`: at the start it ends the run, later a question fails.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from dspy.lm15 import Config, RefusalPart, Request, Response, TextPart, ThinkingPart
from pydantic import Field

from medexam.frozen_model import FrozenModel
from medexam.model_calls import FINISH_REASON, SAMPLES
from medexam.model_identity import ModelIdentity

CHOICE = "choice"
"""Key of `Request.config.extensions` that holds the strings the reply is chosen from."""
PLAIN = "plain"
"""Key of `Request.config.extensions` that is true where the reply continues plain text."""


class EngineInfo(FrozenModel):
    """What really ran; written to `environment.json`."""

    engine: str
    """`embedded`, `vllm`, `litellm`, `batch` or `scripted`."""
    model: str
    """The model as the engine or server names it."""
    identity: ModelIdentity
    """What the model really is; `models.json` of a run keeps it."""
    revision: str | None = None
    """Commit, package version or fingerprint of the weights; None if the server does not say."""
    endpoints: tuple[str, ...] = ()
    server_version: str | None = None
    """Such as `vllm 0.32.0`; None for an engine in this process."""
    max_context: int | None = None
    """Tokens that prompt and reply may have together; None if unknown."""
    chat_template: str | None = None
    """SHA-256 of the chat template; None if the engine has none or cannot see it."""
    system_turn: Literal["kept", "merged"] | None = None
    """`merged`: the template refuses a system message, so its words open the first user message. None if unknown."""
    guided_by: str | None = None
    """How a choice is enforced: `next_token`, `prefill` or `structured_outputs`; None if it cannot be."""
    details: dict[str, Any] = Field(default_factory=dict)
    """What else distinguishes this engine: device, dtype, library versions."""


def take_samples(config: Config) -> tuple[Config, int]:
    """Separate the number of replies from the settings; return the settings without it, and it."""
    if SAMPLES not in (config.extensions or {}):
        return config, 1
    extensions = dict(config.extensions or {})
    samples = extensions.pop(SAMPLES, 1)
    return replace(config, extensions=extensions or None), samples


def join_samples(responses: Sequence[Response]) -> Response:
    """Join the replies of all in one response."""
    first, *others = responses
    if not others:
        return first
    return replace(
        first, provider_data={**(first.provider_data or {}), SAMPLES: [_sample(response) for response in others]}
    )


def _sample(response: Response) -> dict[str, Any]:
    parts = response.message.parts
    return {
        "text": "".join(part.text for part in parts if isinstance(part, TextPart)),
        "thinking": "".join(part.text for part in parts if isinstance(part, ThinkingPart)) or None,
        "refusal": "".join(part.text for part in parts if isinstance(part, RefusalPart)) or None,
        "finish_reason": response.finish_reason,
        "written_reason": (response.provider_data or {}).get(FINISH_REASON),
        "completion_tokens": response.usage.output_tokens,
        "thinking_tokens": response.usage.reasoning_tokens,
    }


@dataclass(frozen=True)
class SyncEngine:
    """The synchronous twin, for notebooks: DSPy's engine contract."""

    complete: Callable[[Request], Response]
    """One reply to one request."""


class Engine(Protocol):
    """A live model. Build one with `medexam.serve.build_engine`; close it with `aclose`."""

    @property
    def sync(self) -> SyncEngine:
        """The same model for synchronous callers."""
        ...

    @property
    def concurrency(self) -> int:
        """How many requests keep it busy; it may change, and the runner keeps that many in flight."""
        ...

    async def complete(self, request: Request) -> Response:
        """Answer one request with one reply."""
        ...

    def info(self) -> EngineInfo:
        """Describe what really runs."""
        ...

    async def aclose(self) -> None:
        """Release the model or the connections; the engine is unusable afterwards."""
        ...


@runtime_checkable
class FolderEngine(Protocol):
    """An engine that keeps what it has in work in the folder of the run that is asked."""

    def work_in(
        self, folder: Path, in_flight: Callable[[], int], submitted: Callable[[], object] | None = None
    ) -> AbstractAsyncContextManager[None]:
        """Use the folder inside the block, in which `in_flight` questions are being asked at once.

        `submitted` is called when all of them wait for what goes on without this process; None: nobody needs to know.
        """
        ...
