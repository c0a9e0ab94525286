"""A server whose reply is a hash of the whole prompt: equal answers of two programs prove equal prompts."""

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from wire_server import Wire, is_identifying, serving


def hashed(prompt: str) -> int:
    return int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:6])


def write_reply(prompt: str) -> str:
    """Write a reply in the form that the prompt's last turn asks for, with the number of one of its options."""
    number, turn = hashed(prompt), prompt.rpartition("<user>")[2]
    answer = 1 + number % len(set(re.findall(r"(?m)^([1-5])\. ", turn)) or "1234")
    if fields := re.findall(r"\[\[ ## (\w+) ## \]\]", turn.rpartition("Respond with")[2]):
        values = {"answer": str(answer), "completed": ""}
        return "\n\n".join(f"[[ ## {name} ## ]]\n{values.get(name, f'thought {number}')}" for name in fields)
    return f"Because of {number}. {{Answer: {answer}}}"


@dataclass
class HashServer(Wire):
    """Speaks vLLM's wire; a choice among tokens or texts is drawn by the hash too."""

    prompts: list[str] = field(default_factory=list)
    """What was asked, in the order of coming; what a probe asks is not among it."""

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        status, reply = super().reply(path, body)
        if status == 200 and "choices" in reply and not body.get("echo") and not is_identifying(body):
            prompts = self.texts(body)
            for choice in reply["choices"]:
                text = self._text(prompts[choice["index"] % len(prompts)], body)
                self.prompts.append(prompts[choice["index"] % len(prompts)])
                choice["finish_reason"] = "stop"
                if "message" in choice:
                    choice["message"]["content"] = text
                else:
                    choice |= {"text": text} | ({"token_ids": list(map(ord, text))} if "token_ids" in choice else {})
        return status, reply

    def texts(self, body: dict[str, Any]) -> list[str]:
        """Return what a request is to have continued."""
        if "messages" in body:
            return ["".join(f"<{turn['role']}>{turn['content']}\n" for turn in body["messages"])]
        prompts = body["prompt"] if isinstance(body["prompt"], list) else [body["prompt"]]
        prompts = [prompts] if isinstance(prompts[0], int) else prompts
        return [prompt if isinstance(prompt, str) else "".join(map(chr, prompt)) for prompt in prompts]

    def _text(self, prompt: str, body: dict[str, Any]) -> str:
        schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
        options = list(map(chr, body.get("allowed_token_ids") or ()))
        if schema:
            options = [json.dumps({"answer": one}) for one in schema["properties"]["answer"]["enum"]]
        return options[hashed(prompt) % len(options)] if options else write_reply(prompt)


@contextmanager
def serving_hashes() -> Iterator[HashServer]:
    """Serve on a free port of this machine until the block ends."""
    with serving(HashServer(models=("hashes",), context=1 << 16)) as server:
        yield server
