"""Every shipped profile's command, read by vLLM's own parser in one subprocess: importing vllm takes long."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from medexam.serve import Node, load_profile, plan_servers, profile_names

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


def one_layout_each() -> Iterator[tuple[Any, Any, Node | None]]:
    for name in profile_names():
        profile = load_profile(name)
        for layout in profile.layouts:
            ranks = range(layout.nodes) if layout.nodes > 1 else ()
            for node in [Node(rank, layout.nodes, "10.0.0.1") for rank in ranks] or [None]:
                yield profile, layout, node


def test_vllm_takes_every_layout_of_every_profile(tmp_path: Path) -> None:
    cases, commands = list(one_layout_each()), []
    for profile, layout, node in cases:
        path = tmp_path / "one.yaml"
        path.write_text(yaml.safe_dump(json.loads(profile.model_copy(update={"layouts": (layout,)}).model_dump_json())))
        (launch,) = plan_servers(str(path), printing=True, node=node)
        words = list(launch.command[3:])
        commands.append(words[1:] if node is not None else words)  # without `serve`, whose options are the same
    asked = subprocess.run(
        [str(PYTHON), "-c", PARSE], input=json.dumps(commands), capture_output=True, text=True, timeout=540
    )
    lines = [line for line in asked.stdout.splitlines() if line.startswith("told:")]
    assert lines, asked.stderr[-2000:]
    for (profile, layout, node), told in zip(cases, json.loads(lines[0][5:]), strict=True):
        assert isinstance(told, dict), told
        assert told["revision"] == told["tokenizer_revision"] == profile.revision
        assert told["max_model_len"] == layout.max_context
        assert told["max_logprobs"] == 128
        assert told["enable_prefix_caching"]
        assert not told["trust_remote_code"]
        if not profile.on_cpu:
            assert told["tensor_parallel_size"] == layout.tensor_parallel
            assert told["pipeline_parallel_size"] == layout.pipeline_parallel
            assert told["gpu_memory_utilization"] == layout.memory_share
        if node is not None:
            assert (told["nnodes"], told["node_rank"]) == (node.count, node.rank)
            assert told["headless"] == (node.rank > 0)
            assert profile.model in (told["tag"], "smollm2")  # whose folder is named
