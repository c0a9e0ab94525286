"""What providers and servers say in words alone: a prompt that is too long, a filter, a wrong key, an empty account.

Their statuses do not tell: the same HTTP 400 means a wrong key at one and a filter at another. Each wording is from the
named API's documentation or its users' reports. This module knows errors and words.
"""

import re

from medexam.errors import (
    AuthError,
    BillingError,
    CallError,
    ContextLengthError,
    FilteredError,
    RateLimitError,
)

_UNAUTHORIZED, _PAYMENT_REQUIRED = 401, 402
_TOO_LONG = re.compile(
    r"context[_ ]length[_ ]exceeded|maximum (context|model) length|max_model_len"  # OpenAI, vLLM
    r"|too large for model with \d+ maximum context"  # Mistral
    r"|when context the overflows|number of tokens to keep from the initial prompt"  # LM Studio
    r"|exceeds? (the (available|model'?s?) )?context|context (size|window) (has been )?exceeded"  # llama.cpp, LM Studio
    r"|prompt is too long: \d+ tokens|input is too long for requested model"  # Anthropic, Bedrock
    r"|input token count .{0,20}exceeds the maximum"  # Gemini
    r"|too many tokens: total",  # Cohere
    re.IGNORECASE,
)
_FILTERED = re.compile(
    r"\bcontent_filter(ed)?\b|ResponsibleAIPolicyViolation|content management policy"  # Azure, OpenAI
    r"|\binvalid_prompt\b|content_policy_violation|violating (our|the) usage policy"  # OpenAI
    r"|blocked by content filtering policy|guardrail_intervened"  # Anthropic, Bedrock
    r"|[\"']flagged_input[\"']|[\"']reasons[\"']: \[|(input|prompt|request) (was|were|has been) flagged"  # OpenRouter
    r"|data_?inspection_?failed|content exists risk|violates usage guidelines"  # DashScope, DeepSeek, xAI
    r"|\bcontentFilter\b|considered high risk|PROHIBITED_CONTENT",  # Zhipu, Moonshot, Gemini
    re.IGNORECASE,
)
"""No provider says it by a status of its own: it comes as 400, 403, 422, 451 and 500."""
_NO_MONEY = re.compile(
    r"insufficient_quota|exceeded your current quota"  # OpenAI, Gemini
    r"|credit balance is too low|insufficient (balance|credits|funds)"  # Anthropic, DeepSeek, OpenRouter
    r"|billing hard limit|used all available credits|monthly spending limit",  # OpenAI, xAI, Fireworks
    re.IGNORECASE,
)
_LATER = re.compile(r"retry in (\d+(?:\.\d+)?) ?s", re.IGNORECASE)
"""What Gemini adds where a quota of the minute is used up."""
_WRONG_KEY = re.compile(
    r"api key not valid|API_KEY_INVALID|api key expired"  # Gemini
    r"|security token included in the request is (invalid|expired)|UnrecognizedClientException"  # Bedrock
    r"|invalid (x-)?api[ -]?key|incorrect api key|invalid api token"  # Anthropic, OpenAI, Cohere
    r"|signature we calculated does not match",  # AWS
    re.IGNORECASE,
)


def read_pause(message: str) -> float | None:
    """Return the seconds after which a provider asks to be asked again, as its words say; None if they do not."""
    later = _LATER.search(message)
    return float(later[1]) if later else None


def refine(fault: CallError) -> CallError:
    """Return the fault as what its words say that it is, or as it is."""
    status, message = fault.status, fault.message
    if isinstance(fault, FilteredError):
        return fault
    words = f"{message} {fault.provider_code or ''}"
    if _FILTERED.search(words):
        return FilteredError(message, status=status)
    if isinstance(fault, AuthError | BillingError | ContextLengthError):
        return fault
    if _TOO_LONG.search(words):
        return ContextLengthError(message, status=status)
    if status == _UNAUTHORIZED or _WRONG_KEY.search(words):
        return AuthError(message, status=status)
    passes = isinstance(fault, RateLimitError) and read_pause(words) is not None
    if status == _PAYMENT_REQUIRED or (_NO_MONEY.search(words) and not passes):
        return BillingError(message, status=status)
    return fault
