"""The thinking of a server's chat reply: found where the server left it in the text, and counted where it was not.

A server without a parser leaves it in the text, and vLLM counts 0 for a block that the prompt opened.
"""

from dataclasses import replace

from medexam.model_calls import Generation, is_cut
from medexam.serve.logprobs.vllm import Tokenizer
from medexam.serve.thinking import CLOSING, find_thinking, whole_reply


async def count_thinking(generation: Generation, tokenizer: Tokenizer | None, *, opened: bool) -> Generation:
    """Return the reply with its whole thinking and the tokens of it; these are not counted without a tokenizer.

    `opened`: the prompt leaves a block open, which the reply fills.
    """
    thinking = generation.thinking
    if thinking is None:
        text = generation.words
        # A parser that found nothing to tell apart leaves an answer, which is neither cut nor closes a block.
        opened = opened and (is_cut(generation.finish_reason) or CLOSING in text)
        block = find_thinking(text, opened=opened)
        if block is None:
            return generation
        thinking = block[0]
        reply = whole_reply(text, opened=opened)
        generation = replace(generation, reply=reply, text=None, source=generation.source if reply == text else None)
    if generation.thinking_tokens or tokenizer is None:
        return generation
    return replace(generation, thinking_tokens=len(await tokenizer.tokens(thinking)))
