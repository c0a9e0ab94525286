"""What every engine here promises: `reply(Dialogue) -> Generation`.

An engine knows messages, tokens and choices; it knows nothing of questions, exams or answers. What an engine
cannot do of a dialogue, it refuses. An engine of one's own may answer DSPy's requests instead, by
`async complete(Request) -> Response`.

A class that an installed package adds may have `async from_spec(spec, needs) -> Engine`, which builds it from the whole
model part of a spec instead of its `args`. Such a class may say of itself, each as a static method of the spec:
`is_billed` (a provider bills each token), `is_free` (nobody can); `list_prices(info)` takes its dollars a token from
litellm's entry, and `works_in_folder` true says that one process asks it, alone, inside `async with
engine.work_in(folder, in_flight)`: it keeps what it has in work in the run's folder, and `in_flight()` questions are
being asked at once.

An engine whose model may be swapped behind its name has `async find_changes() -> list[str]`: what tells the model that
answers now from the first, empty where nothing does. An engine may declare what its model takes in the server's own
form, under DSPy's names: `supports_function_calling`, `supports_response_schema` and `supported_params`, names of
OpenAI's fields. What it does not declare, DSPy's adapters ask in words. `takes_seed` false says that no seed reaches
the model.

Failures are raised as `CallError`s, after the engine has retried what a retry may cure; a prompt that does not
fit the context is a `ContextLengthError`. Log-probabilities that a server does not give, or that cannot be
true, are a `medexam.errors.LogprobsUnavailableError`: at the start it ends the run, later a question fails.
"""

from typing import Any, Literal, Protocol

from pydantic import Field

from medexam.frozen_model import FrozenModel
from medexam.model_calls import Dialogue, Generation
from medexam.model_identity import ModelIdentity


class EngineInfo(FrozenModel):
    """What really ran; written to `environment.json`."""

    engine: str
    """`embedded`, `vllm`, `litellm`, `scripted`, or another's name."""
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


class Engine(Protocol):
    """A live model. Build one with `medexam.serve.build_engine`; close it with `aclose`."""

    @property
    def concurrency(self) -> int:
        """How many requests keep it busy; it may change, and the runner keeps that many in flight."""
        ...

    async def reply(self, dialogue: Dialogue) -> Generation:
        """Return the reply to one dialogue."""
        ...

    def info(self) -> EngineInfo:
        """Describe what really runs."""
        ...

    async def aclose(self) -> None:
        """Release the model or the connections; the engine is unusable afterwards."""
        ...


async def find_changes(engine: object) -> list[str]:
    """Describe what tells the model that answers now from the first, by the engine's method if it has one."""
    look = getattr(engine, "find_changes", None)
    changes: list[str] = [] if look is None else await look()
    return changes
