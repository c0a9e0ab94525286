"""Hosted providers as their documentation and their users' reports show them: bodies, status codes and headers.

The bodies lie in `providers/NAME.json`, beside the pages that show them. A wire reads a request in its provider's own
form and answers in it. Its model gives the last of the choices that it is held to, and else the first option.
"""

import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pytest
from wire_server import Wire, serving

FOLDER = Path(__file__).parent / "providers"
REPLY = "{Answer: 1}"


@dataclass
class Asked:
    """What a request asks, whatever its form."""

    messages: list[dict[str, Any]]
    max_tokens: int | None
    choices: list[str] | None = None
    """Those of a schema that the reply is held to."""
    by_tool: bool = False
    """Whether they are a tool's argument."""
    thinks: bool = True
    """Whether the request leaves the model to think."""
    as_json: bool = False
    """Whether the reply is any JSON object."""

    @property
    def picture_tokens(self) -> int:
        """Tokens of the pictures in the last message."""
        return 85 if self.messages and "iVBORw0KGgo" in str(self.messages[-1]) else 0

    @property
    def named(self) -> list[str]:
        """The choices that the last user message names in words."""
        texts = [str(message) for message in self.messages if message.get("role") == "user"]
        words = re.search(r"one of these (?:strings|and with nothing else): (.*?)\.", texts[-1])
        return re.findall(r'"(.*?)"', words[1].replace("\\", "")) if words else []


@cache
def recording(name: str) -> dict[str, Any]:
    """What is recorded of a provider; one whose API is `like` another's records what differs."""
    document = json.loads((FOLDER / f"{name}.json").read_text())
    if "like" not in document:
        return document
    other = recording(document["like"])
    merged = {part: {**other[part], **document.get(part, {})} for part in ("headers", "reply", "refusals")}
    return {**document, **merged}


@dataclass
class ProviderWire(Wire):
    """A provider; `fault` names the refusal that it answers every request with."""

    name: ClassVar[str]
    model_name: ClassVar[str]
    """As a spec names it."""
    variables: ClassVar[dict[str, str]]
    """Environment variables that litellm reads, without the address."""
    base: ClassVar[str] = "OPENAI_API_BASE"
    """The variable of the address."""
    tail: ClassVar[str] = "/v1"
    """What the address ends in."""
    thought: int = 0
    """Tokens that its model thinks."""
    held: bool = True
    """Its model is held to schemas and tools."""
    obeys: bool = True
    """Its model does what it is told in words."""
    prefills: bool = True
    """It takes a last message of the assistant's."""
    temperatures: tuple[float, ...] | None = None
    """Those that it takes; None: all."""
    unknown: tuple[str, ...] = ()
    """Fields that it refuses."""
    forms: tuple[str, ...] = ("json_schema", "json_object")
    """Types of `response_format` that it takes."""
    schema_beside: bool = False
    """Its `json_object` heeds a schema beside it."""
    forces_tools: bool = True
    """It takes a tool choice of `required`."""
    sees: bool = True
    """Its model sees; else it drops pictures."""
    fault: str | None = None
    questions: list[Asked] = field(default_factory=list)
    """What each request that it answered asks."""

    @property
    def environment(self) -> dict[str, str]:
        """What stands in the environment of who asks it."""
        return {**self.variables, self.base: self.address.removesuffix("/v1") + self.tail}

    def bytes_of(self, path: str, body: dict[str, Any]) -> tuple[dict[str, str], Iterator[bytes]]:
        told = recording(self.name)
        refusal = self.fault or self.refusal(body)
        if refusal is not None:
            kind, _, what = refusal.partition(" ")
            status, document = told["refusals"][kind]["status"], told["refusals"][kind]["body"]
            headers = told["refusals"][kind].get("headers", {})
            reply = json.dumps(document).replace("{field}", what)
        else:
            asked = self.read(body)
            self.questions.append(asked)
            status, headers, reply = 200, {}, json.dumps(self.write(asked, json.loads(json.dumps(told["reply"]))))
        return {":status": str(status), **told["headers"], **headers}, iter([reply.encode()])

    def refusal(self, body: dict[str, Any]) -> str | None:
        """The refusal of a field or a message, and which field; None if it takes all."""
        refused = next((name for name in self.unknown if name in body), None)
        if refused is not None:
            return f"field {refused}"
        form = (body.get("response_format") or {}).get("type")
        if form is not None and form not in self.forms:
            return f"format {form}"
        if body.get("tool_choice") == "required" and not self.forces_tools:
            return "field tool_choice"
        temperature = self.temperature(body)
        if self.temperatures is not None and temperature is not None and temperature not in self.temperatures:
            return "temperature"
        last = self.read(body).messages[-1]
        return "prefill" if not self.prefills and last.get("role") in ("assistant", "model") else None

    def temperature(self, body: dict[str, Any]) -> float | None:
        return body.get("temperature")

    def text(self, asked: Asked) -> str:
        if asked.choices and self.held:
            return json.dumps({"answer": asked.choices[-1]})
        if not asked.named or not self.obeys:
            return REPLY
        return json.dumps({"answer": asked.named[-1]}) if asked.as_json else asked.named[-1]

    def thinks_for(self, asked: Asked) -> int:
        return self.thought if asked.thinks else 0

    def is_cut(self, asked: Asked) -> bool:
        """Whether thinking takes the whole budget."""
        return asked.max_tokens is not None and 0 < asked.max_tokens <= self.thinks_for(asked)

    def read(self, body: dict[str, Any]) -> Asked:
        form = body.get("response_format") or {}
        schema = form.get("json_schema", form if self.schema_beside else {}).get("schema")
        tools = body.get("tools")
        if tools:
            schema = tools[0]["function"]["parameters"]
        return Asked(
            messages=body["messages"],
            max_tokens=body.get("max_completion_tokens", body.get("max_tokens")),
            choices=schema["properties"]["answer"]["enum"] if schema else None,
            by_tool=bool(tools),
            thinks=(body.get("thinking") or {}).get("type") != "disabled",
            as_json=form.get("type") == "json_object",
        )

    def write(self, asked: Asked, reply: dict[str, Any]) -> dict[str, Any]:
        choice, text = reply["choices"][0], self.text(asked)
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if asked.by_tool and self.held:
            function = {"name": "answer", "arguments": text}
            message |= {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
        if self.is_cut(asked):
            message = {"role": "assistant", "content": ""}
            choice["finish_reason"] = "length"
        choice["message"] = message
        reply["usage"]["prompt_tokens"] += asked.picture_tokens * self.sees
        if thought := self.thinks_for(asked):
            reply["usage"]["completion_tokens_details"] = {"reasoning_tokens": thought}
            reply["usage"]["completion_tokens"] += thought
        return reply


@dataclass
class Anthropic(ProviderWire):
    name: ClassVar[str] = "anthropic"
    model_name: ClassVar[str] = "anthropic/claude-sonnet-4-5"
    variables: ClassVar[dict[str, str]] = {"ANTHROPIC_API_KEY": "key"}
    base: ClassVar[str] = "ANTHROPIC_API_BASE"
    tail: ClassVar[str] = ""
    unknown: tuple[str, ...] = ("seed",)

    def read(self, body: dict[str, Any]) -> Asked:
        schema = (body.get("output_format") or {}).get("schema")
        tools = body.get("tools")
        if tools:
            schema = tools[0]["input_schema"]
        choices = schema["properties"]["answer"]["enum"] if schema else None
        return Asked(body["messages"], body["max_tokens"], choices, bool(tools))

    def write(self, asked: Asked, reply: dict[str, Any]) -> dict[str, Any]:
        text = self.text(asked)
        reply["content"] = [{"type": "text", "text": text}]
        if asked.by_tool and self.held:
            call = {"type": "tool_use", "id": "toolu_1", "name": "answer", "input": json.loads(text)}
            reply |= {"content": [call], "stop_reason": "tool_use"}
        reply["usage"]["input_tokens"] += asked.picture_tokens * self.sees
        return reply


@dataclass
class OldAnthropic(Anthropic):
    """A model without schemas, which litellm asks by a tool of its own name."""

    model_name: ClassVar[str] = "anthropic/claude-3-haiku-20240307"


@dataclass
class NewAnthropic(Anthropic):
    """A model that takes no opening words."""

    model_name: ClassVar[str] = "anthropic/claude-opus-4-6"
    prefills: bool = False


@dataclass
class OpenAI(ProviderWire):
    name: ClassVar[str] = "openai"
    model_name: ClassVar[str] = "openai/gpt-4o-mini"
    variables: ClassVar[dict[str, str]] = {"OPENAI_API_KEY": "key"}


@dataclass
class GPT5(OpenAI):
    model_name: ClassVar[str] = "openai/gpt-5"
    thought: int = 320
    temperatures: tuple[float, ...] | None = (1,)
    unknown: tuple[str, ...] = ("max_tokens", "stop", "top_p")


@dataclass
class O3(GPT5):
    model_name: ClassVar[str] = "openai/o3"


@dataclass
class Gemini(ProviderWire):
    name: ClassVar[str] = "gemini"
    model_name: ClassVar[str] = "gemini/gemini-2.5-flash"
    variables: ClassVar[dict[str, str]] = {"GEMINI_API_KEY": "key"}
    base: ClassVar[str] = "GEMINI_API_BASE"
    tail: ClassVar[str] = ""
    thought: int = 320
    always: bool = False
    """Its model cannot be kept from thinking."""

    def refusal(self, body: dict[str, Any]) -> str | None:
        off = body["generationConfig"].get("thinkingConfig", {}).get("thinkingBudget") == 0
        return "budget" if off and self.always else super().refusal(body)

    def read(self, body: dict[str, Any]) -> Asked:
        settings, tools = body["generationConfig"], body.get("tools")
        schema = settings.get("response_json_schema") or settings.get("response_schema")
        if tools:
            schema = tools[0]["function_declarations"][0]["parameters"]
        return Asked(
            body["contents"],
            settings.get("max_output_tokens"),
            schema["properties"]["answer"]["enum"] if schema else None,
            bool(tools),
            settings.get("thinkingConfig", {}).get("thinkingBudget") != 0,
        )

    def temperature(self, body: dict[str, Any]) -> float | None:
        return body["generationConfig"].get("temperature")

    def write(self, asked: Asked, reply: dict[str, Any]) -> dict[str, Any]:
        candidate, text = reply["candidates"][0], self.text(asked)
        candidate["content"]["parts"] = [{"text": text}]
        if asked.by_tool and self.held:
            candidate["content"]["parts"] = [{"functionCall": {"name": "answer", "args": json.loads(text)}}]
        if self.is_cut(asked):
            candidate |= {"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}
        if thought := self.thinks_for(asked):
            reply["usageMetadata"]["thoughtsTokenCount"] = thought
        reply["usageMetadata"]["promptTokenCount"] += asked.picture_tokens * self.sees
        return reply


@dataclass
class GeminiPro(Gemini):
    model_name: ClassVar[str] = "gemini/gemini-2.5-pro"
    always: bool = True


@dataclass
class Bedrock(ProviderWire):
    name: ClassVar[str] = "bedrock"
    model_name: ClassVar[str] = "bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0"
    variables: ClassVar[dict[str, str]] = {
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "key",
        "AWS_REGION_NAME": "us-east-1",
    }
    base: ClassVar[str] = "AWS_BEDROCK_RUNTIME_ENDPOINT"
    tail: ClassVar[str] = ""

    def read(self, body: dict[str, Any]) -> Asked:
        tools = (body.get("toolConfig") or {}).get("tools")
        schema = tools[0]["toolSpec"]["inputSchema"]["json"] if tools else None
        choices = schema["properties"]["answer"]["enum"] if schema else None
        return Asked(body["messages"], body["inferenceConfig"]["maxTokens"], choices, bool(tools))

    def write(self, asked: Asked, reply: dict[str, Any]) -> dict[str, Any]:
        text = self.text(asked)
        reply["output"]["message"]["content"] = [{"text": text}]
        if asked.by_tool and self.held:
            call = {"toolUseId": "tooluse_1", "name": "json_tool_call", "input": json.loads(text)}
            reply["output"]["message"]["content"] = [{"toolUse": call}]
            reply["stopReason"] = "tool_use"
        reply["usage"]["inputTokens"] += asked.picture_tokens * self.sees
        return reply


@dataclass
class Mistral(ProviderWire):
    name: ClassVar[str] = "mistral"
    model_name: ClassVar[str] = "mistral/mistral-large-latest"
    variables: ClassVar[dict[str, str]] = {"MISTRAL_API_KEY": "key"}
    base: ClassVar[str] = "MISTRAL_AZURE_API_BASE"
    prefills: bool = False


@dataclass
class Cohere(ProviderWire):
    name: ClassVar[str] = "cohere"
    model_name: ClassVar[str] = "cohere_chat/command-a-03-2025"
    variables: ClassVar[dict[str, str]] = {"COHERE_API_KEY": "key"}
    base: ClassVar[str] = "COHERE_API_BASE"
    tail: ClassVar[str] = "/v2/chat"
    sees: bool = False
    forms: tuple[str, ...] = ("json_object",)
    schema_beside: bool = True

    def write(self, asked: Asked, reply: dict[str, Any]) -> dict[str, Any]:
        text = self.text(asked)
        reply["message"]["content"] = [{"type": "text", "text": text}]
        if asked.by_tool and self.held:
            function = {"name": "answer", "arguments": text}
            call = {"id": "answer_1", "type": "function", "function": function}
            reply["message"] = {"role": "assistant", "tool_plan": "I will answer.", "tool_calls": [call]}
            reply["finish_reason"] = "TOOL_CALL"
        return reply


@dataclass
class Azure(OpenAI):
    name: ClassVar[str] = "azure"
    model_name: ClassVar[str] = "azure/gpt-4o"
    variables: ClassVar[dict[str, str]] = {"AZURE_API_KEY": "key", "AZURE_API_VERSION": "2024-10-21"}
    base: ClassVar[str] = "AZURE_API_BASE"
    tail: ClassVar[str] = ""


@dataclass
class Perplexity(OpenAI):
    name: ClassVar[str] = "perplexity"
    model_name: ClassVar[str] = "perplexity/sonar"
    variables: ClassVar[dict[str, str]] = {"PERPLEXITYAI_API_KEY": "key"}
    base: ClassVar[str] = "PERPLEXITY_API_BASE"
    prefills: bool = False
    unknown: tuple[str, ...] = ("seed", "stop", "tools")
    forms: tuple[str, ...] = ("json_schema",)


@dataclass
class Groq(OpenAI):
    name: ClassVar[str] = "groq"
    model_name: ClassVar[str] = "groq/llama-3.3-70b-versatile"
    variables: ClassVar[dict[str, str]] = {"GROQ_API_KEY": "key"}
    base: ClassVar[str] = "GROQ_API_BASE"
    sees: bool = False
    forms: tuple[str, ...] = ("json_object",)


@dataclass
class DeepSeek(OpenAI):
    name: ClassVar[str] = "deepseek"
    model_name: ClassVar[str] = "deepseek/deepseek-chat"
    variables: ClassVar[dict[str, str]] = {"DEEPSEEK_API_KEY": "key"}
    base: ClassVar[str] = "DEEPSEEK_API_BASE"
    sees: bool = False
    forms: tuple[str, ...] = ("json_object",)


@dataclass
class Together(OpenAI):
    name: ClassVar[str] = "together"
    model_name: ClassVar[str] = "together_ai/meta-llama/Llama-3.3-70B-Instruct-Turbo"
    variables: ClassVar[dict[str, str]] = {"TOGETHERAI_API_KEY": "key"}
    base: ClassVar[str] = "TOGETHER_AI_API_BASE"
    sees: bool = False


@dataclass
class Fireworks(OpenAI):
    name: ClassVar[str] = "fireworks"
    model_name: ClassVar[str] = "fireworks_ai/accounts/fireworks/models/llama-v3p3-70b-instruct"
    variables: ClassVar[dict[str, str]] = {"FIREWORKS_AI_API_KEY": "key"}
    base: ClassVar[str] = "FIREWORKS_API_BASE"
    sees: bool = False


@dataclass
class DeepInfra(OpenAI):
    name: ClassVar[str] = "deepinfra"
    model_name: ClassVar[str] = "deepinfra/meta-llama/Llama-3.3-70B-Instruct"
    variables: ClassVar[dict[str, str]] = {"DEEPINFRA_API_KEY": "key"}
    base: ClassVar[str] = "DEEPINFRA_API_BASE"
    sees: bool = False
    forms: tuple[str, ...] = ("json_object",)
    forces_tools: bool = False


@dataclass
class SambaNova(OpenAI):
    name: ClassVar[str] = "sambanova"
    model_name: ClassVar[str] = "sambanova/Meta-Llama-3.3-70B-Instruct"
    variables: ClassVar[dict[str, str]] = {"SAMBANOVA_API_KEY": "key"}
    base: ClassVar[str] = "SAMBANOVA_API_BASE"
    sees: bool = False
    unknown: tuple[str, ...] = ("seed",)


@dataclass
class Databricks(OpenAI):
    name: ClassVar[str] = "databricks"
    model_name: ClassVar[str] = "databricks/databricks-meta-llama-3-3-70b-instruct"
    variables: ClassVar[dict[str, str]] = {"DATABRICKS_API_KEY": "key"}
    base: ClassVar[str] = "DATABRICKS_API_BASE"
    tail: ClassVar[str] = "/serving-endpoints"
    sees: bool = False
    unknown: tuple[str, ...] = ("seed",)


@dataclass
class Zai(OpenAI):
    name: ClassVar[str] = "zai"
    model_name: ClassVar[str] = "zai/glm-4.6"
    variables: ClassVar[dict[str, str]] = {"ZAI_API_KEY": "key"}
    base: ClassVar[str] = "ZAI_API_BASE"
    tail: ClassVar[str] = "/api/paas/v4"
    sees: bool = False
    thought: int = 320
    unknown: tuple[str, ...] = ("seed",)
    forms: tuple[str, ...] = ("json_object",)
    forces_tools: bool = False


@dataclass
class XAI(OpenAI):
    name: ClassVar[str] = "xai"
    model_name: ClassVar[str] = "xai/grok-4"
    variables: ClassVar[dict[str, str]] = {"XAI_API_KEY": "key"}
    base: ClassVar[str] = "XAI_API_BASE"
    thought: int = 320
    unknown: tuple[str, ...] = ("stop",)


@dataclass
class OpenRouter(OpenAI):
    name: ClassVar[str] = "openrouter"
    model_name: ClassVar[str] = "openrouter/openai/gpt-4o-mini"
    variables: ClassVar[dict[str, str]] = {"OPENROUTER_API_KEY": "key"}
    base: ClassVar[str] = "OPENROUTER_API_BASE"


WIRES = (
    *(OpenAI, GPT5, O3, Azure, Anthropic, OldAnthropic, NewAnthropic, Bedrock, Gemini, GeminiPro, Mistral, Cohere),
    *(XAI, DeepSeek, Groq, Together, Fireworks, DeepInfra, SambaNova, Databricks, OpenRouter, Perplexity, Zai),
)


@contextmanager
def serve_provider(wire: ProviderWire) -> Iterator[ProviderWire]:
    """Serve a provider on this machine, which litellm asks instead of the real one; no other machine is found."""
    find = socket.getaddrinfo

    def find_here(host: str | None, *arguments: Any, **settings: Any) -> Any:
        if host not in ("127.0.0.1", "localhost", None):
            raise socket.gaierror(f"a test looks for {host}")
        return find(host, *arguments, **settings)

    with serving(wire), pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", find_here)
        for name, value in wire.environment.items():
            patch.setenv(name, value)
        yield wire
