"""Each provider's form of requests and replies, and what its models take; the bodies lie in `providers/NAME.json`."""

import json
from dataclasses import dataclass
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
