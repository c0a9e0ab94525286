"""Thinking told apart as vLLM's own parsers do on the same text, in one subprocess: importing vllm takes long."""

import json
import os
import subprocess

import pytest

from medexam.serve import smollm2_folder
from medexam.signatures import split_thinking

PYTHON = os.environ.get("MEDEXAM_VLLM_PYTHON")

pytestmark = [
    pytest.mark.vllm_env,
    pytest.mark.skipif(PYTHON is None, reason="MEDEXAM_VLLM_PYTHON names no Python with vLLM"),
]

PARSE = """
import json, sys
from transformers import AutoTokenizer
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser.harmony import _SegmentType
from vllm.reasoning import ReasoningParserManager

asked = json.load(sys.stdin)
tokenizer = AutoTokenizer.from_pretrained(asked["tokenizer"])
tokenizer.add_tokens(["<think>", "</think>", "<tool_call>", "</tool_call>"])
request = ChatCompletionRequest(messages=[], model="m")
told = {}
for name in ("qwen3", "deepseek_r1"):
    parser = ReasoningParserManager.get_reasoning_parser(name)
    told[name] = [parser(tokenizer).extract_reasoning(text, request) for text in asked["texts"]]
told["channels"] = [_SegmentType.from_channel_and_recipient(*pair).name for pair in asked["channels"]]
print("told:" + json.dumps(told))
"""
TEXTS = [
    "<think>Is it 2?</think>{Answer: 1}",
    "<think>\nIs it {Answer: 2}?\n</think>\n\n{Answer: 1}",
    "\n<think>\n\n</think>\n\n{Answer: 1}",
    "Is it 2?</think>\n{Answer: 1}",
    "<think>cut off {Answer: 2}",
    "<think>cut off here</think>",
    "<think>¿Es 2 < 3? Ünïcödé &amp; <b>\n\nNo.</think> La respuesta: {Answer: 4}",
    "<think>" + "long " * 300 + "</think>{Answer: 1}",
]
CHANNELS = {
    "<|channel|>analysis<|message|>Is it 2?<|end|>": ("analysis", None),
    "<|channel|>final<|message|>{Answer: 1}<|return|>": ("final", None),
    "<|channel|>commentary<|message|>So.<|end|>": ("commentary", None),
    "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>": ("commentary", "functions.f"),
}
"""A message of gpt-oss in each of its channels -> the channel and the recipient that vLLM reads from its tokens."""


def test_texts_are_split_as_vllm_splits_them() -> None:
    asked = {"tokenizer": str(smollm2_folder()), "texts": TEXTS, "channels": list(CHANNELS.values())}
    done = subprocess.run(
        [str(PYTHON), "-c", PARSE],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "VLLM_LOGGING_LEVEL": "ERROR", "HF_HUB_OFFLINE": "1", "PYTHONPATH": ""},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.rpartition("told:")[2])
    for text, *theirs in zip(TEXTS, told["qwen3"], told["deepseek_r1"], strict=True):
        thinking, said = split_thinking(text)
        for reasoning, content in theirs:
            assert thinking == ((reasoning or "").strip() or None), text
            assert said == (content or "").lstrip(), text
    for (text, _), kind in zip(CHANNELS.items(), told["channels"], strict=True):
        thinking, said = split_thinking(text)
        assert (thinking is not None, bool(said)) == (kind == "REASONING", kind == "CONTENT"), text
