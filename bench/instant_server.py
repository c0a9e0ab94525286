"""A server that answers at once, so that what a client can carry is all that is measured.

    python bench/instant_server.py --port 8123 [--delay-ms 0] [--rate 200]

It speaks the OpenAI wire as vLLM does, as far as medexam, lm-evaluation-harness, inspect-ai and stock DSPy read it,
with SmolLM2's own tokenizer and chat template, and without a model: a guided choice is the first that is allowed, a
chat reply takes the first option in the form that its prompt asks for, and each token of an echoed prompt has a
log-probability between -2 and -1. Replies are as large as vLLM's: the tokens of a prompt are told where they are asked
for, as so many made-up ones where the prompt is text. `/cpu` tells the seconds of processor time that it has used,
which shows whether the client or the server was the slower. With `--rate` it serves no more than so many prompts a
second, in the order in which they come, however many clients there are. Prints its address once it listens; port 0
takes any that is free.
"""

import argparse
import asyncio
import time
from functools import lru_cache
from typing import Any

import orjson
from aiohttp import web

from medexam.serve import smollm2_folder

MODEL = "smollm2"
CONTEXT = 8192

PLAIN_REPLY = " 1"
"""To a prompt that is merely gone on from."""
CHAT_REPLY = "{Answer: 1}"
ASKED_FORMS = {
    b"ANSWER: $LETTER": "ANSWER: A",
    b"[[ ## answer ## ]]": "[[ ## answer ## ]]\n1\n\n[[ ## completed ## ]]",
}
"""What stands in the chat prompts of inspect-ai and of DSPy's own adapter, and the reply in that form."""
CHARACTERS_A_TOKEN = 4
LOGPROBS = 97
"""How many different ones tokens have."""


class Instant:
    """The routes and their state: a tokenizer, and when the prompts that are there will have been served."""

    def __init__(self, delay_s: float, rate: float | None) -> None:
        from transformers import AutoTokenizer

        self.folder = smollm2_folder()
        self.tokenizer = AutoTokenizer.from_pretrained(self.folder)
        self.delay_s = delay_s
        self.rate = rate
        self.free_at = 0.0
        self.decode = lru_cache(maxsize=None)(lambda token: str(self.tokenizer.decode([token])))

    def application(self) -> web.Application:
        app = web.Application(client_max_size=1 << 28)
        app.add_routes(
            [
                web.get("/health", self.health),
                web.get("/version", self.version),
                web.get("/metrics", self.health),
                web.get("/cpu", self.cpu),
                web.get("/v1/models", self.models),
                web.post("/tokenize", self.tokenize),
                web.post("/detokenize", self.detokenize),
                web.post("/v1/completions", self.completions),
                web.post("/v1/chat/completions", self.chat),
            ]
        )
        return app

    async def health(self, _: web.Request) -> web.Response:
        return web.Response()

    async def version(self, _: web.Request) -> web.Response:
        return reply({"version": "0.32.0"})

    async def cpu(self, _: web.Request) -> web.Response:
        return reply({"cpu_s": time.process_time()})

    async def models(self, _: web.Request) -> web.Response:
        card = {"id": MODEL, "object": "model", "root": str(self.folder), "max_model_len": CONTEXT}
        return reply({"object": "list", "data": [card]})

    async def tokenize(self, request: web.Request) -> web.Response:
        body = orjson.loads(await request.read())
        if "messages" in body:
            text = self.tokenizer.apply_chat_template(body["messages"], tokenize=False, add_generation_prompt=True)
            ids = self.tokenizer.encode(text, add_special_tokens=False)
        else:
            ids = self.tokenizer.encode(body["prompt"], add_special_tokens=body.get("add_special_tokens", True))
        return reply({"tokens": ids, "count": len(ids), "max_model_len": CONTEXT})

    async def detokenize(self, request: web.Request) -> web.Response:
        body = orjson.loads(await request.read())
        return reply({"prompt": self.tokenizer.decode(body["tokens"])})

    async def completions(self, request: web.Request) -> web.Response:
        body = orjson.loads(await request.read())
        prompts = body["prompt"]
        if isinstance(prompts, str) or (prompts and isinstance(prompts[0], int)):
            prompts = [prompts]
        await self.take_time(len(prompts))
        choices = [self.choice(place, prompt, body) for place, prompt in enumerate(prompts)]
        usage = {"prompt_tokens": 100 * len(prompts), "completion_tokens": len(prompts)}
        usage["total_tokens"] = sum(usage.values())
        head = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": MODEL}
        return reply({**head, "choices": choices, "usage": usage})

    async def take_time(self, prompts: int) -> None:
        """Wait as long as a server of this delay and rate takes for a request, behind those that came before it."""
        wait_s = self.delay_s
        if self.rate:
            now = asyncio.get_running_loop().time()
            self.free_at = max(now, self.free_at) + prompts / self.rate
            wait_s += self.free_at - now
        if wait_s:
            await asyncio.sleep(wait_s)

    def choice(self, place: int, prompt: str | list[int], body: dict[str, Any]) -> dict[str, Any]:
        allowed = body.get("allowed_token_ids")
        named = (body.get("structured_outputs") or {}).get("choice")
        said = (said for words, said in ASKED_FORMS.items() if isinstance(prompt, str) and words.decode() in prompt)
        free = PLAIN_REPLY if body.get("max_tokens") == 1 else next(said, CHAT_REPLY)
        text = self.decode(allowed[0]) if allowed else named[0] if named else free
        choice: dict[str, Any] = {"index": place, "text": text, "finish_reason": "length", "logprobs": None}
        if body.get("return_token_ids"):
            choice["token_ids"] = allowed[:1] if allowed else self.tokenizer.encode(text)
            made_up = [1] * (len(prompt) // CHARACTERS_A_TOKEN)
            choice["prompt_token_ids"] = prompt if isinstance(prompt, list) else made_up
        if body.get("echo") and body.get("logprobs") is not None:
            ids = prompt if isinstance(prompt, list) else self.tokenizer.encode(prompt)
            # What is written behind the prompt stands behind its tokens.
            ids = [*ids, 1] if body.get("max_tokens", 1) else ids
            words = [f"token_id:{token}" for token in ids]
            values = [-1 - token % LOGPROBS / LOGPROBS for token in ids]
            choice["logprobs"] = {
                "tokens": words,
                "token_logprobs": [None, *values[1:]],
                "top_logprobs": [None, *({word: value} for word, value in zip(words[1:], values[1:], strict=True))],
                "text_offset": list(range(len(words))),
            }
        return choice

    async def chat(self, request: web.Request) -> web.Response:
        body = await request.read()
        await self.take_time(1)
        content = next((said for words, said in ASKED_FORMS.items() if words in body), CHAT_REPLY)
        choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107}
        head = {"id": "chat-1", "object": "chat.completion", "created": 1, "model": MODEL}
        return reply({**head, "choices": [choice], "usage": usage})


def reply(body: dict[str, Any]) -> web.Response:
    return web.Response(body=orjson.dumps(body), content_type="application/json")


async def serve(port: int, delay_s: float, rate: float | None) -> None:
    runner = web.AppRunner(Instant(delay_s, rate).application(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=2048).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--port", type=int, default=8123)
    parser.add_argument("--delay-ms", type=float, default=0.0)
    parser.add_argument("--rate", type=float, help="prompts a second; as many as it can by default")
    arguments = parser.parse_args()
    asyncio.run(serve(arguments.port, arguments.delay_ms / 1000, arguments.rate))
