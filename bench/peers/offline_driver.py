"""vLLM without HTTP: answers prompts that come down a pipe. It runs under vLLM's own interpreter.

    python offline_driver.py OPTIONS_OF_VLLM

Each line of its input is a JSON list of completions requests; it answers with one line, the texts of each request.
"""

import asyncio
import json
import os
import sys

from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser
from vllm.v1.engine.async_llm import AsyncLLM

from vllm import SamplingParams


async def answer(engine: AsyncLLM, body: dict, name: str) -> list[str]:
    """The texts of one request, its prompts all at once, as the server does."""
    settings = SamplingParams(
        temperature=body["temperature"], max_tokens=body["max_tokens"], allowed_token_ids=body["allowed_token_ids"]
    )
    special = {"add_special_tokens": body["add_special_tokens"]}

    async def one(prompt: str, place: int) -> str:
        text = ""
        async for output in engine.generate(prompt, settings, f"{name}-{place}", tokenization_kwargs=special):
            text = output.outputs[0].text
        return text

    return await asyncio.gather(*(one(prompt, place) for place, prompt in enumerate(body["prompt"])))


async def serve() -> None:
    # The engine's logs go elsewhere than the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    parsed = make_arg_parser(FlexibleArgumentParser()).parse_args(sys.argv[1:])
    engine = AsyncLLM.from_engine_args(AsyncEngineArgs.from_cli_args(parsed))
    answers.write("ready\n")
    answers.flush()
    turn = 0
    while line := await asyncio.to_thread(sys.stdin.readline):
        bodies = json.loads(line)
        turn += 1
        texts = await asyncio.gather(*(answer(engine, body, f"{turn}-{at}") for at, body in enumerate(bodies)))
        answers.write(json.dumps(texts) + "\n")
        answers.flush()
    engine.shutdown()


if __name__ == "__main__":
    asyncio.run(serve())
