"""Servers that answer at once: at addresses that pages name, and as the vllm that `medexam serve` starts."""

import argparse
import re
import signal
import sys
import textwrap
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fake_vllm import write_fake_vllm
from wire_server import Wire, serving

TESTS = Path(__file__).parents[1]
ANSWER = "{Answer: 1}"
MODELS = {
    "LLAMA": ("meta-llama/Llama-3.1-8B-Instruct",),
    "LLAMA_BASE": ("meta-llama/Llama-3.1-8B",),
    "SMOLLM2": ("smollm2",),
    "JOB": ("llama-3.1-70b",),
}
"""Name of a server in this process -> the models that it serves."""


class Answering(Wire):
    """A server that is healthy and answers in the paper's form, unless a request holds it to another one.

    What it is asked to translate it copies.
    """

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path == "/health":
            return 200, {}
        status, said = super().reply(path, body)
        for choice in said.get("choices", ()):
            message = choice.get("message", {})
            if message.get("content") == "hello":
                message["content"] = _copied(body["messages"]) or ANSWER
            elif choice.get("text") == "x":
                choice["text"] = _source(str(body["prompt"])) or ANSWER
        return status, said


def _copied(messages: list[dict[str, str]]) -> str:
    asked = messages[-1]["content"]
    return asked if "translator" in messages[0]["content"] else _source(asked)


def _source(prompt: str) -> str:
    """The question that a prompt asks to translate; "" if it asks for something else."""
    found = re.findall(r"^(?:Spanish|English):\n(.*?)\n\n(?:Spanish|English):$", prompt, re.DOTALL | re.MULTILINE)
    return found[-1] if "Translate the following" in prompt and found else ""


def start_servers(stack: ExitStack) -> dict[str, str]:
    """Serve until the stack closes; gives the address of each server of `MODELS`."""
    started = {
        name: stack.enter_context(serving(Answering(models=models, context=1 << 16))) for name, models in MODELS.items()
    }
    return {name: wire.address for name, wire in started.items()}


def write_vllm(site: Path) -> None:
    """A package in `site` that calls itself vllm and is started as a server of this module."""
    server = f"""
    import sys
    sys.path[:0] = {[str(TESTS), str(TESTS / "serve")]!r}
    from documented.servers import serve_as_vllm
    serve_as_vllm()
    """
    write_fake_vllm(site, server=textwrap.dedent(server))


def serve_as_vllm() -> None:
    """Serve until SIGTERM, with the options of vLLM's own command line that say what and where."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--served-model-name")
    parser.add_argument("--port", type=int, required=True)
    options, _ = parser.parse_known_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with serving(Answering(models=(options.served_model_name or options.model,), context=1 << 16), port=options.port):
        signal.pause()
