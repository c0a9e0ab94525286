"""Every shipped profile's command, read by vLLM's own parser in one subprocess: importing vllm takes long."""

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from medexam.serve import Launch, Node, load_profile, plan_server, profile_names

PYTHON = os.environ.get("MEDEXAM_VLLM_PYTHON")

pytestmark = [
    pytest.mark.vllm_env,
    pytest.mark.skipif(PYTHON is None, reason="MEDEXAM_VLLM_PYTHON names no Python with vLLM"),
]

PARSE = """
import contextlib, io, json, sys
from vllm.reasoning import ReasoningParserManager
from vllm.utils.argparse_utils import FlexibleArgumentParser
try:
    from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
except ImportError:
    from vllm.entrypoints.openai.cli_args import make_arg_parser, validate_parsed_serve_args

parser = make_arg_parser(FlexibleArgumentParser())
told = []
for words in json.load(sys.stdin):
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            args = parser.parse_args(words)
        validate_parsed_serve_args(args)
        if args.reasoning_parser:
            ReasoningParserManager.get_reasoning_parser(args.reasoning_parser)
        told.append({key: getattr(args, key) for key in KEYS} | {"headless": args.headless, "tag": args.model_tag})
    except (SystemExit, Exception) as error:
        told.append(f"{type(error).__name__}: {error} {said.getvalue()[-400:]}")
print("told:" + json.dumps(told))
""".replace(
    "KEYS",
    '("revision", "tokenizer_revision", "max_model_len", "tensor_parallel_size", "pipeline_parallel_size", '
    '"gpu_memory_utilization", "max_logprobs", "enable_prefix_caching", "trust_remote_code", "nnodes", "node_rank")',
)


def plans() -> Iterator[tuple[Any, Launch, Node]]:
    for name in profile_names():
        for node in (Node(), Node(0, 2, "10.0.0.1"), Node(1, 2, "10.0.0.1")):
            yield load_profile(name), plan_server(name, printing=True, node=node), node


def test_vllm_takes_the_command_of_every_profile() -> None:
    cases, commands = list(plans()), []
    for _, launch, node in cases:
        words = list(launch.command[3:])
        commands.append(words[1:] if node.count > 1 else words)  # without `serve`, whose options are the same
    asked = subprocess.run(
        [str(PYTHON), "-c", PARSE], input=json.dumps(commands), capture_output=True, text=True, timeout=540
    )
    lines = [line for line in asked.stdout.splitlines() if line.startswith("told:")]
    assert lines, asked.stderr[-2000:]
    for (profile, launch, node), told in zip(cases, json.loads(lines[0][5:]), strict=True):
        assert isinstance(told, dict), told
        assert told["revision"] == told["tokenizer_revision"] == profile.revision
        assert str(told["max_model_len"]) in launch.command
        assert told["max_logprobs"] == 128
        assert told["enable_prefix_caching"]
        assert not told["trust_remote_code"]
        if profile.size is not None:
            assert told["tensor_parallel_size"] == len(launch.gpus)
            assert told["gpu_memory_utilization"] == 0.95
        if node.count > 1:
            assert (told["nnodes"], told["node_rank"], told["pipeline_parallel_size"]) == (node.count, node.rank, 2)
            assert told["headless"] == (node.rank > 0)
            assert profile.model in (told["tag"], "smollm2")  # whose folder is named
