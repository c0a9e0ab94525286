"""`medexam doctor`: what a server really honours."""

import json as json_format
import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from medexam.serve.probe import Capabilities


def doctor(
    endpoint: Annotated[str, typer.Argument(help="Such as http://127.0.0.1:8000/v1.", metavar="ENDPOINT")],
    model: Annotated[str | None, typer.Option(help="The model to ask; the only one by default.")] = None,
    api_key_env: Annotated[str | None, typer.Option(help="Environment variable that holds the key.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Ask a server what it is and what it honours."""
    import asyncio

    from medexam.serve.endpoints import NO_KEY, open_endpoints, read_key
    from medexam.serve.probe import probe_endpoint

    asked = open_endpoints([endpoint], read_key(api_key_env, "VLLM_API_KEY") or NO_KEY)[0]
    seen = asyncio.run(probe_endpoint(asked, model))
    if as_json:
        document = {**seen.model_dump(), "guided_by": seen.guided_by}
        sys.stdout.write(json_format.dumps(document, ensure_ascii=False, indent=2) + "\n")
    else:
        _print_table(seen)


def _print_table(seen: "Capabilities") -> None:
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
        "logprob_token_ids": _yes(seen.label_logprobs),
        "guided answers": f"by {seen.guided_by}" if seen.guided_by else "impossible: use answer_format free",
        "one call, one token": f"{seen.call_s * 1000:.0f} ms",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    Console().print(table)


def _yes(honoured: bool) -> str:
    return "honoured" if honoured else "not honoured"
