"""Each provider's form of requests and replies, and what its models take; the bodies lie in `providers/NAME.json`."""

import json
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Any, ClassVar

from provider_wire import Asked, ProviderWire


@dataclass
class Anthropic(ProviderWire):
    name: ClassVar[str] = "anthropic"
    model_name: ClassVar[str] = "anthropic/claude-sonnet-4-5"
    variables: ClassVar[dict[str, str]] = {"ANTHROPIC_API_KEY": "key"}
    base: ClassVar[str] = "ANTHROPIC_API_BASE"
    tail: ClassVar[str] = ""
    unknown: tuple[str, ...] = ("seed",)

    def refusal(self, body: dict[str, Any]) -> str | None:
        thinking = body.get("thinking") or {}
        if thinking.get("type") != "enabled":
            return super().refusal(body)
        if body.get("temperature", 1) != 1:
            return "thinking"
        if (body.get("tool_choice") or {}).get("type") in ("tool", "any"):
            return "forced"
        return "budget" if body["max_tokens"] <= thinking["budget_tokens"] else super().refusal(body)

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


CASES = Path(__file__).parents[1] / "cases" / "providers.jsonl"
"""A model a line: of which class its provider's wire is, or what the wire takes if it is like OpenAI's, and `right`,
what is found out about the model."""
ROWS: list[dict[str, Any]] = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]


def _wire_of(row: dict[str, Any]) -> type[ProviderWire]:
    if "takes" not in row:
        kind: type[ProviderWire] = globals()[row["class"]]
        return kind
    takes = [(name, Any, tuple(value) if isinstance(value, list) else value) for name, value in row["takes"].items()]
    about = {name: row[name] for name in ("name", "variables", "base", "tail")}
    return make_dataclass(row["class"], takes, bases=(ProviderWire,), namespace={**about, "model_name": row["model"]})


WIRES = tuple(map(_wire_of, ROWS))
"""Every model's wire, in the order of the file."""
PROVIDERS = {kind.name: kind for kind in reversed(WIRES)}
"""Provider -> the wire of its first model."""
