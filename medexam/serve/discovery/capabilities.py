"""What one server or one provider's model honours, as the probe found it; the engine decides by it how to ask.

`medexam doctor` shows it. Of a provider's model the record begins with litellm's own tables.
"""

import re

from pydantic import Field

from medexam.errors import AnswerFormatError, EngineError, LogprobsUnavailableError
from medexam.frozen_model import FrozenModel
from medexam.model_calls import ReadBy
from medexam.model_identity import Behaviour, ModelIdentity
from medexam.serve.chat_messages import TemplateRules, no_sight, no_template
from medexam.serve.choice_schema import ChoiceForm
from medexam.serve.discovery.requests import NEUTRAL
from medexam.specs import EngineNeeds

_UNSHOWN = {"endpoint", "models", "dialogue", "behaviour", "fields", "variables", "missing", "refusals"}
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_CACHED = re.compile(r"/models--([^/]+)--([^/]+)/snapshots/([0-9a-f]{40})/?$")


class Capabilities(FrozenModel):
    """What was seen of one address, or of one provider's model."""

    endpoint: str = ""
    """Empty for a provider's model."""
    provider: str | None = None
    """litellm's name of the provider; None for an address."""
    server_version: str | None = None
    """Such as `vllm 0.32.0`, `llama.cpp`, `ollama 0.12.3`, or `version 1.2` of a server of another kind; None if it
    does not say."""
    models: tuple[str, ...] = ()
    model: str
    """The one that was asked for, or the only one."""
    source: str | None = None
    """The folder or hub id that the server loaded; None if it does not say."""
    max_context: int | None = None
    """Tokens that prompt and reply may have together; None if the server does not say."""
    system_turn: bool | None = True
    """The chat template takes a system message and shows it to the model; None if it was not asked."""
    repeated_turns: bool = True
    """The chat template takes two messages of one role in a row."""
    empty_system_turn: bool = True
    """The chat template takes a system message without words."""
    chat: bool = True
    """It takes dialogues: a base model has no chat template."""
    completes: bool = False
    """It continues plain text."""
    takes_lists: bool = False
    """One request takes several prompts."""
    renders: bool = False
    """`/tokenize` and `/detokenize` give the rendered prompt back exactly."""
    allowed_token_ids: bool = False
    choice_form: ChoiceForm | None = None
    """What holds a chat reply to a choice; None if nothing does."""
    prefills: bool | None = None
    """Whether it takes the opening words of a reply beside that form; None if none were shown to it."""
    neutral: dict[str, int | float] = Field(default_factory=dict)
    """Sampling fields that each request states unless it has values of its own, with the value that changes nothing."""
    limit: str | None = "max_tokens"
    """The field of a dialogue's request at which a reply ends; None: it ends at none that is known."""
    tokenizes: bool = False
    echo_logprobs: int | None = None
    """How many alternatives must be asked for so that `echo` gives the log-probability of each token of a prompt: 0, or
    1 if 0 means no log-probabilities at all. None if it gives none."""
    names_tokens: bool = False
    """`logprob_token_ids` names the tokens whose log-probabilities come with a reply."""
    thinks: bool | None = None
    """Whether the model thinks without being told to; None for a base model."""
    room: int = 0
    """Tokens that a server takes for a reply's thinking beside its own budget."""
    dialogue: str | None = None
    """Hash of what the chat template and the tokenizer make of a fixed dialogue; None if it cannot be seen."""
    behaviour: Behaviour | None = None
    """What the model makes of a fixed text; None if it shows nothing."""
    sees: bool | None = None
    """Whether it reads a picture beside a text; None if none was shown to it."""
    takes_tools: bool | None = None
    """Whether dialogues may offer tools, and replies call them; None if none was offered."""
    takes_schema: bool | None = None
    """Whether `response_format` holds replies to a JSON schema; None if none was sent."""
    probed: bool = True
    """Whether the model itself was asked; False: litellm's tables alone."""
    fields: tuple[str, ...] = ()
    """OpenAI's fields that litellm passes on to a provider."""
    seeds: bool = True
    stops: bool = True
    """It ends a reply at given texts; False: the reply is cut there when it has come."""
    fixed_temperature: float | None = None
    """The only temperature that it takes; None: it takes others too, or none was refused yet."""
    prompt_usd: float | None = None
    """US dollars a token of a prompt; None where litellm's list has no price."""
    completion_usd: float | None = None
    variables: tuple[str, ...] = ()
    """Environment variables from which litellm reads the key and the address."""
    missing: tuple[str, ...] = ()
    """Those of them that are not set, as far as litellm tells."""
    refusals: dict[str, str] = Field(default_factory=dict)

    @property
    def is_vllm(self) -> bool:
        """Whether it says that it is vLLM."""
        return (self.server_version or "").startswith("vllm")

    @property
    def identity(self) -> ModelIdentity:
        """What answers here."""
        if self.provider is not None:
            return ModelIdentity(engine="litellm", name=self.model, behaviour=self.behaviour)
        notes = {"version": self.server_version, "source": self.source, "max_context": self.max_context}
        cached = _CACHED.search(self.source or "")
        hub_id = f"{cached[1]}/{cached[2]}" if cached else self.source if _HUB_ID.fullmatch(self.source or "") else None
        return ModelIdentity(
            engine="vllm",
            name=self.model,
            hub_id=hub_id,
            commit=cached[3] if cached else None,
            dialogue=self.dialogue,
            behaviour=self.behaviour,
            sampling=self.sampling,
            notes=notes,
        )

    @property
    def guided_by(self) -> str | None:
        """How a choice is enforced here; None if it cannot be."""
        if self.renders and self.allowed_token_ids:
            return "prefill"
        return self.choice_form

    @property
    def reads(self) -> frozenset[ReadBy]:
        """The methods by which log-probabilities can be read here."""
        if not self.tokenizes:
            return frozenset()
        echo: set[ReadBy] = {"echo"} if self.echo_logprobs is not None else set()
        return frozenset(echo | ({"label"} if self.names_tokens else set()))

    @property
    def sampling(self) -> str:
        """How requests treat sampling values that a spec leaves out, in words that are part of a run's identity."""
        lacking = [name for name in NEUTRAL if name != "repeat_penalty" and name not in self.neutral]
        return f"neutral but for {', '.join(lacking)}" if lacking else "neutral"

    @property
    def rules(self) -> TemplateRules:
        """What the chat template accepts."""
        system = self.system_turn is not False
        return TemplateRules(system=system, repeats=self.repeated_turns, empty_system=self.empty_system_turn)

    @property
    def missing_key(self) -> str | None:
        """What to do about a key that is missing and that the provider is never reached without; None if none is."""
        if not self.missing or not all(variable.endswith("_API_KEY") for variable in self.missing):
            return None
        return (
            f"{self.model} needs a key: set {' or '.join(self.missing)} in the environment, or name another variable "
            "in model.api_key_env"
        )

    def check(self, needs: EngineNeeds) -> None:
        """Raise for what requests need and are not given here, as `build_engine` does."""
        way_out = "serve the model with a newer vLLM, or use engine embedded"
        place = f"{self.endpoint} ({self.server_version or 'unknown version'})"
        place = f"provider {self.provider}" if self.provider else place
        if needs.chat and not self.chat:
            reason = f"; the server says: {words}" if (words := self.refusals.get("dialogues")) else ""
            raise EngineError(f"{place} serves {no_template(self.model)}{reason}")
        if needs.pictures and not self.sees:
            raise EngineError(f"{place} serves {no_sight(self.model)}")
        if needs.plain and not self.completes:
            raise EngineError(f"{place} cannot continue plain text; {way_out}")
        # Answers to pictures are asked as a chat.
        if needs.guided and not (self.choice_form if needs.pictures else self.guided_by):
            refusals = "; ".join(f"{name}: {words}" for name, words in self.refusals.items())
            raise AnswerFormatError(
                f"{self.model} at {place} cannot be held to an answer format: it was asked for an impossible choice, "
                f"and no form of request brought it{f' ({refusals})' if refusals else ''}; set program.answer_format "
                f"to free, or {way_out}"
            )
        if needs.closes and not self.renders:
            raise EngineError(
                f"{place} does not render its chat template exactly, so thinking that was cut off cannot be continued: "
                f"leave program.answer_after_budget out, or {way_out}"
            )
        if needs.logprobs and not self.reads:
            lack = "gives no log-probabilities of given tokens" if self.tokenizes else "does not serve /tokenize"
            raise LogprobsUnavailableError(f"{place} {lack}, so texts cannot be scored; {way_out}")

    def describe(self) -> dict[str, str]:
        """Return what was found out, in words."""
        entries = {"guided_by": self.guided_by, "reads": sorted(self.reads), "print": self.identity.print}
        entries |= self.model_dump(exclude=_UNSHOWN) | {f"refuses {name}": text for name, text in self.refusals.items()}
        words = {True: "yes", False: "no"}
        return {
            name.replace("_", " "): words.get(value, "") if isinstance(value, bool) else str(value)
            for name, value in entries.items()
            if value not in (None, "", [], {})
        }
