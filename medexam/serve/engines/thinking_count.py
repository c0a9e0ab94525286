"""The thinking of a server's chat reply: found where the server left it in the text, and counted where it was not.

A server without a parser leaves it in the text, and vLLM counts 0 for a block that the prompt opened.
"""

from dataclasses import replace

from dspy.lm15 import Message, Response, ThinkingPart

from medexam.serve.logprobs.vllm import Tokenizer
from medexam.serve.thinking import CLOSING, find_thinking, whole_reply


async def count_thinking(response: Response, tokenizer: Tokenizer | None, *, opened: bool) -> Response:
    """Return the reply with its whole thinking and the tokens of it; these are not counted without a tokenizer.

    `opened`: the prompt leaves a block open, which the reply fills.
    """
    thinking = "".join(part.text for part in response.message.parts if isinstance(part, ThinkingPart))
    if not thinking:
        text = response.text or ""
        # A parser that found nothing to tell apart leaves an answer, which is neither cut nor closes a block.
        opened = opened and (response.finish_reason == "length" or CLOSING in text)
        block = find_thinking(text, opened=opened)
        if block is None:
            return response
        thinking = block[0]
        response = replace(response, message=Message.assistant(whole_reply(text, opened=opened)))
    if response.usage.reasoning_tokens or tokenizer is None:
        return response
    token_count = len(await tokenizer.tokens(thinking))
    return replace(response, usage=replace(response.usage, reasoning_tokens=token_count))
