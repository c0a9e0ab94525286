"""`medexam doctor`: what a server really honours."""

import json as json_format
import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from medexam.serve.probe import Capabilities
    from medexam.serve.read_check import ReadVerdict


def doctor(
    endpoint: Annotated[str, typer.Argument(help="Such as http://127.0.0.1:8000/v1.", metavar="ENDPOINT")],
    model: Annotated[str | None, typer.Option(help="The model to ask; the only one by default.")] = None,
    api_key_env: Annotated[str | None, typer.Option(help="Environment variable that holds the key.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Ask a server what it is and what it honours."""
    import asyncio

    seen, verdicts = asyncio.run(_ask(endpoint, model, api_key_env))
    if as_json:
        document = {
            **seen.model_dump(),
            "guided_by": seen.guided_by,
            "reads": [verdict.model_dump() for verdict in verdicts],
        }
        sys.stdout.write(json_format.dumps(document, ensure_ascii=False, indent=2) + "\n")
    else:
        _print_table(seen, verdicts)


async def _ask(endpoint: str, model: str | None, api_key_env: str | None) -> "tuple[Capabilities, list[ReadVerdict]]":
    from medexam.serve import build_engine
    from medexam.serve.endpoints import NO_KEY, open_endpoints, read_key
    from medexam.serve.probe import probe_endpoint
    from medexam.serve.read_check import check_reads
    from medexam.specs import ModelSpec

    asked = open_endpoints([endpoint], read_key(api_key_env, "VLLM_API_KEY") or NO_KEY)[0]
    seen = await probe_endpoint(asked, model)
    spec = ModelSpec(engine="vllm", endpoints=(endpoint,), name=seen.model, api_key_env=api_key_env)
    engine = await build_engine(spec, guided=False)
    try:
        return seen, await check_reads(engine)
    finally:
        await engine.aclose()


def _print_table(seen: "Capabilities", verdicts: "list[ReadVerdict]") -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=seen.endpoint, show_header=False)
    rows = {
        "server": seen.server_version or "unknown",
        "models": ", ".join(seen.models),
        "asked": seen.model,
        "loaded from": seen.source or "not told",
        "context": f"{seen.max_context} tokens" if seen.max_context else "not told",
        "system turn": "kept" if seen.system_turn else "refused: its words open the first user turn",
        "repeated turns": "kept" if seen.repeated_turns else "refused: joined into one",
        "renders its chat template": _yes(seen.renders),
        "many prompts a request": _yes(seen.list_prompts),
        "allowed_token_ids": _yes(seen.allowed_token_ids),
        "structured_outputs": _yes(seen.structured_outputs),
        "echo": _yes(seen.echo_logprobs is not None),
        "logprob_token_ids": f"honoured, {seen.named_logprobs} a request" if seen.named_logprobs else _yes(False),
        "probabilities behind a mask": "those of all tokens" if seen.masked_logprobs else "not told",
        "remembers prompts": f"in blocks of {seen.prefix_block} tokens" if seen.prefix_block else "no",
        "guided answers": f"by {seen.guided_by}" if seen.guided_by else "impossible: use answer_format free",
        "one call, one token": f"{seen.call_s * 1000:.0f} ms",
        **{f"log-probabilities by {verdict.way}": _verdict(verdict) for verdict in verdicts},
    }
    for name, value in rows.items():
        table.add_row(name, value)
    Console().print(table)


def _verdict(verdict: "ReadVerdict") -> str:
    if verdict.refusal is not None:
        return f"no: {verdict.refusal}"
    if verdict.difference is None:
        return f"yes, the measure of the others, {verdict.seconds:.2f} s"
    return f"yes, {verdict.difference:.1e} nats a token from it, {verdict.seconds:.2f} s"


def _yes(honoured: bool) -> str:
    return "honoured" if honoured else "not honoured"
