"""What one server or one hosted model honours, as the probe found it; engines decide by it how to ask.

`medexam doctor` shows it. Of a hosted model the record begins with litellm's own tables.
"""

import re

from pydantic import Field

from medexam.frozen_model import FrozenModel
from medexam.model_calls import ReadBy
from medexam.model_identity import Behaviour, ModelIdentity
from medexam.serve.chat_messages import TemplateRules
from medexam.serve.choice_schema import ChoiceForm
from medexam.serve.discovery.requests import NEUTRAL

YES = {True: "yes", False: "no", None: "not known"}
_MERGED = "merged: its words open the first user turn"
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_CACHED = re.compile(r"/models--([^/]+)--([^/]+)/snapshots/([0-9a-f]{40})/?$")


class Capabilities(FrozenModel):
    """What was seen of one endpoint."""

    endpoint: str
    server_version: str | None
    """Such as `vllm 0.32.0`, `llama.cpp`, `ollama 0.12.3`, or `version 1.2` of a server of another kind; None if it
    does not say."""
    models: tuple[str, ...]
    model: str
    """The one that was asked for, or the only one."""
    source: str | None
    """The folder or hub id that the server loaded; None if it does not say."""
    max_context: int | None
    """Tokens that prompt and reply may have together; None if the server does not say."""
    system_turn: bool
    """The chat template takes a system message and shows it to the model."""
    repeated_turns: bool
    """The chat template takes two messages of one role in a row."""
    empty_system_turn: bool = True
    """The chat template takes a system message without words."""
    chat: bool = True
    """It takes dialogues: a base model has no chat template."""
    renders: bool
    """`/tokenize` and `/detokenize` give the rendered prompt back exactly."""
    allowed_token_ids: bool
    structured_outputs: bool
    neutral: dict[str, int | float] = Field(default_factory=dict)
    """Sampling fields that each request states unless it has values of its own, with the value that changes nothing."""
    limit: str | None = "max_tokens"
    """The field of a dialogue's request at which a reply ends; None: it ends at none that is known."""
    tokenizes: bool
    echo_logprobs: int | None
    """How many alternatives must be asked for so that `echo` gives the log-probability of each token of a prompt: 0, or
    1 if 0 means no log-probabilities at all. None if it gives none."""
    names_tokens: bool
    """`logprob_token_ids` names the tokens whose log-probabilities come with a reply."""
    thinks: bool | None = None
    """Whether the model thinks without being told to; None for a base model."""
    dialogue: str | None = None
    """Hash of what the chat template and the tokenizer make of a fixed dialogue; None if it cannot be seen."""
    behaviour: Behaviour | None = None
    """What the model makes of a fixed text; None if the server does not complete texts."""
    sees: bool | None = None
    """Whether it reads a picture beside a text; None if none was shown to it."""
    takes_tools: bool | None = None
    """Whether dialogues may offer tools, and replies call them; None if none was offered."""
    takes_schema: bool | None = None
    """Whether `response_format` holds replies to a JSON schema; None if none was sent."""
    refusals: dict[str, str] = Field(default_factory=dict)

    @property
    def is_vllm(self) -> bool:
        """Whether it says that it is vLLM.

        A request of vLLM's may hold many prompts, and `n` brings replies under the next seeds; others are asked apart.
        """
        return is_vllm(self.server_version)

    @property
    def identity(self) -> ModelIdentity:
        """What answers here."""
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
        return "structured_outputs" if self.structured_outputs else None

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
        return TemplateRules(system=self.system_turn, repeats=self.repeated_turns, empty_system=self.empty_system_turn)

    def describe(self) -> dict[str, str]:
        """Return way of asking -> what becomes of it here, in words."""
        return {
            "server": self.server_version or "not told",
            "model": self.model,
            "print": self.identity.print,
            "loaded from": self.source or "not told",
            "context": f"{self.max_context} tokens" if self.max_context else "not told",
            "free": "yes" if self.chat else "plain text alone: it has no chat template",
            "system turn": "kept" if self.system_turn else _MERGED,
            "guided": f"by {self.guided_by}" if self.guided_by else f"no{self._refusal('structured_outputs')}",
            "likelihood": ", ".join(sorted(self.reads)) or f"no{self._refusal('echo')}",
            "samples": "yes, one request" if self.is_vllm else "yes, a request each",
            "thinking": YES[self.thinks],
            "pictures": f"{YES[self.sees]}{self._refusal('pictures')}",
            "sampling left out": self.sampling,
        }

    def _refusal(self, feature: str) -> str:
        return f": {self.refusals[feature]}" if feature in self.refusals else ""


class HostedCapabilities(FrozenModel):
    """What one hosted model takes: litellm's tables first, then what the probe saw on the wire."""

    model: str
    provider: str
    server_version: str | None = None
    probed: bool = False
    """Whether the model itself was asked; False: the tables alone."""
    fields: tuple[str, ...] = ()
    """OpenAI's fields that litellm passes on to it."""
    seeds: bool = True
    fixed_temperature: float | None = None
    """The only temperature that it takes; None: it takes others too, or none was refused yet."""
    stops: bool = True
    """It ends a reply at given texts; False: the reply is cut there when it has come."""
    takes_schema: bool = False
    """It takes a JSON schema: by the tables, or as an endpoint of one's own showed."""
    takes_tools: bool = False
    thinks: bool = False
    """It thinks without being told to, so that a reply needs room for that."""
    system_turn: bool | None = None
    """Whether a system message reaches it; None if it was not asked."""
    sees: bool | None = None
    limit: str | None = None
    """The field at which a reply of an endpoint of one's own ends; None: as litellm's tables say."""
    unlimited: bool = False
    """No field ends a reply of that endpoint."""
    prefills: bool | None = None
    """Whether it takes the opening words of its reply beside a choice; None if none were shown to it."""
    guided_by: ChoiceForm | None = None
    """What holds it to a choice; None if nothing does, or it was not asked."""
    prompt_usd: float | None = None
    """US dollars a token of a prompt; None where litellm's list has no price."""
    completion_usd: float | None = None
    variables: tuple[str, ...] = ()
    """Environment variables from which litellm reads the key and the address."""
    missing: tuple[str, ...] = ()
    """Those of them that are not set, as far as litellm tells."""
    refusals: dict[str, str] = Field(default_factory=dict)

    @property
    def missing_key(self) -> str | None:
        """What to do about a key that is missing and that the provider is never reached without; None if none is."""
        if not self.missing or not all(variable.endswith("_API_KEY") for variable in self.missing):
            return None
        return (
            f"{self.model} needs a key: set {' or '.join(self.missing)} in the environment, or name another variable "
            "in model.api_key_env"
        )

    def takes(self, field: str) -> bool:
        """Return whether litellm passes a field of OpenAI's on to it."""
        return field in self.fields

    def describe(self) -> dict[str, str]:
        """Return way of asking -> what becomes of it here, in words."""
        guided = f"by {self.guided_by}" if self.guided_by else "no" if self.probed else "by json_schema"
        if not self.probed and not self.takes_schema:
            guided = "known once it is asked"
        price = "not known"
        if self.prompt_usd is not None and self.completion_usd is not None:
            price = f"${self.prompt_usd * 1e6:.2f} and ${self.completion_usd * 1e6:.2f} a million tokens"
        thinking = "if told to" if self.takes("thinking") or self.takes("reasoning_effort") else "no"
        return {
            "provider": self.provider,
            **({"server": self.server_version} if self.server_version else {}),
            "free": "yes",
            "system turn": {True: "kept", False: _MERGED, None: "not known"}[self.system_turn],
            "guided": guided,
            "likelihood": "no: it reports no log-probabilities of given texts",
            "samples": "yes, a request each",
            "seeds": "yes" if self.seeds else "not seeded: it takes none",
            "temperature": "any" if self.fixed_temperature is None else f"{self.fixed_temperature:g} alone",
            "stop texts": "yes" if self.stops else "cut by medexam, after the reply",
            "opening words": YES[self.prefills],
            "thinking": "yes" if self.thinks else thinking,
            "pictures": YES[self.sees],
            "price": price,
        }


def is_vllm(version: str | None) -> bool:
    """Return whether a server's version is one of vLLM's."""
    return (version or "").startswith("vllm")
