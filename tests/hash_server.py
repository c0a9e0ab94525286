"""A server whose reply is a hash of the whole rendered prompt: equal answers of two programs prove equal prompts."""

import asyncio
import hashlib
import importlib.util
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

INSTANT = Path(__file__).parents[1] / "bench" / "instant_server.py"
"""The server that speaks the wire, with SmolLM2's tokenizer and chat template."""


@dataclass
class HashServer:
    address: str
    prompts: list[str]
    """What was asked, rendered, in the order of coming."""


def hashed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6])


def write_reply(prompt: str) -> str:
    """Write a reply in the form that the prompt's last turn asks for."""
    number, turn = hashed(prompt), prompt.rpartition("<|im_start|>user")[2]
    answer = 1 + number % len(set(re.findall(r"(?m)^([1-5])\. ", turn)) or {1, 2, 3, 4})
    if fields := re.findall(r"\[\[ ## (\w+) ## \]\]", turn.rpartition("Respond with")[2]):
        values = {"answer": str(answer), "completed": ""}
        return "\n\n".join(f"[[ ## {name} ## ]]\n{values.get(name, f'thought {number}')}" for name in fields)
    return f"Because of {number}.\n\n{{Answer: {answer}}}" if "reason" in prompt.lower() else f"{{Answer: {answer}}}"


class Hashing:
    """Replaces what the instant server says in reply to questions; what a probe asks is answered as usual."""

    prompts: list[str]

    def choice(self, place: int, prompt: str | list[int], body: dict[str, Any]) -> dict[str, Any]:
        choice = super().choice(place, prompt, body)
        named, allowed = (body.get("structured_outputs") or {}).get("choice"), body.get("allowed_token_ids")
        if body.get("echo") or not (named or allowed or body.get("max_tokens", 0) > 1):
            return choice
        text = self.keep(prompt if isinstance(prompt, str) else self.tokenizer.decode(prompt))
        if allowed:
            token = allowed[hashed(text) % len(allowed)]
            return choice | {"text": self.decode(token), **({"token_ids": [token]} if "token_ids" in choice else {})}
        reply = named[hashed(text) % len(named)] if named else write_reply(text)
        return choice | {"text": reply, "finish_reason": "stop"}

    async def chat(self, request: web.Request) -> web.Response:
        body = orjson.loads(await request.read())
        prompt = self.tokenizer.apply_chat_template(body["messages"], tokenize=False, add_generation_prompt=True)
        reply = orjson.loads((await super().chat(request)).body)
        reply["choices"][0]["message"]["content"] = write_reply(self.keep(prompt))
        return web.Response(body=orjson.dumps(reply), content_type="application/json")

    def keep(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return prompt


@contextmanager
def serving_hashes() -> Iterator[HashServer]:
    """Serve on a free port of this machine until the block ends."""
    spec = importlib.util.spec_from_file_location("instant_server", INSTANT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    server = type("HashingServer", (Hashing, module.Instant), {"prompts": []})(0.0, None)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    runner = web.AppRunner(server.application(), access_log=None)

    async def listen() -> str:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}/v1"

    try:
        yield HashServer(asyncio.run_coroutine_threadsafe(listen(), loop).result(), server.prompts)
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
