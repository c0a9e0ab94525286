"""Prompts on the completions endpoint of vLLM's servers: text to be continued, or tokens whose probabilities are read.

One request holds many prompts. This module knows prompts and bodies of requests, and no messages.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from medexam.errors import InvalidRequestError
from medexam.serve.engines.litellm_calls import reading_reply
from medexam.serve.engines.posted_calls import post_completions
from medexam.serve.engines.vllm_wire import Completion, order_choices, read_completions
from medexam.serve.logprobs.tokens import TokenPath
from medexam.serve.pool.batcher import Batcher
from medexam.serve.pool.server_pool import Server, ServerPool

T = TypeVar("T")

_BATCHES = 4
"""Requests over which the prompts of a server are spread, so that it works on one while the client reads another."""
_MOST_PROMPTS = 256
"""The most prompts of one request: if it fails, all of them are lost."""
_MOST_REPLIES = 32
"""The most free replies of one request: all of them wait for the longest."""
_SHORT = 128
"""Tokens of a short reply; longer ones differ so much in length that each is asked alone."""


class Completions:
    """The completions endpoint of a model's servers. Bodies are JSON, so that prompts of equal ones share a request."""

    def __init__(self, pool: ServerPool, model: str, *, lists: bool) -> None:
        """Set up the endpoint; `lists`: the servers take several prompts in one request."""
        self._pool = pool
        self._model = model
        self._lists = lists
        batcher = partial(
            Batcher[str, str, list[Completion]], self._send, busy_at=self.busy_at, split_on=InvalidRequestError
        )
        self._choices = batcher(max_items=self.most_prompts)
        self._replies = batcher(max_items=lambda: min(self.most_prompts(), _MOST_REPLIES))

    def most_prompts(self) -> int:
        """Return how many prompts one request may hold."""
        share = self._pool.limit.value // (_BATCHES * max(len(self._pool.active), 1))
        return min(share, _MOST_PROMPTS) if self._lists else 1

    def busy_at(self) -> int:
        """Return how many prompts in flight keep the servers busy."""
        return self._pool.limit.value // 2

    async def choose(self, prompt: str, body: str) -> list[Completion]:
        """Ask for the replies to a prompt that are no longer than a choice."""
        return await self._choices.submit(body, prompt)

    async def write(self, prompt: str, body: str, max_tokens: int | None) -> list[Completion]:
        """Ask for the free replies to a prompt."""
        if max_tokens is not None and max_tokens <= _SHORT:
            return await self._replies.submit(body, prompt)
        (replies,) = await self._send(body, [prompt])
        return replies

    async def read(self, body: str, prompts: Sequence[TokenPath]) -> list[Any]:
        """Read what is told of prompts of token ids, in their order."""
        fields = {"return_token_ids": True, "return_tokens_as_token_ids": True, **json.loads(body)}
        fields["prompt"] = [list(prompt) for prompt in prompts]
        return await self._post(fields, lambda raw: order_choices(raw, len(prompts)), weight=len(prompts))

    async def _send(self, body: str, prompts: Sequence[str]) -> list[list[Completion]]:
        """Send one request for the replies to all of these prompts."""
        # Servers that take no list of prompts take one as it is.
        prompt = list(prompts) if len(prompts) > 1 else prompts[0]
        fields = {"add_special_tokens": False, "return_token_ids": True, **json.loads(body), "prompt": prompt}
        samples = fields.get("n", 1)
        return await self._post(
            fields,
            lambda raw: read_completions(raw, self._model, len(prompts), samples),
            weight=len(prompts) * samples,
        )

    async def _post(self, fields: Mapping[str, Any], read: Callable[[dict[str, Any]], T], *, weight: int) -> T:
        """Ask for a server's completions as `read` reads them; if that raises a curable error, ask again."""

        async def send(server: Server) -> T:
            raw = await post_completions(server.client, self._model, fields, timeout_s=self._pool.timeout_s)
            with reading_reply():
                return read(raw)

        return await self._pool.call(send, weight=weight)
