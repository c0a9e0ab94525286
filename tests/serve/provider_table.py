"""The list of docs/providers.md: what each provider and server takes, found out on its wire.

`python tests/serve/provider_table.py` writes it anew.
"""

import asyncio
import io
import json
import sys
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "serve"), str(ROOT / "tests")]

from engine_calls import ask, reply, spec_of  # noqa: E402
from other_servers import TGI, LlamaServer, Ollama  # noqa: E402
from provider_wire import REPLY, ProviderWire, serve_provider  # noqa: E402
from provider_wires import WIRES  # noqa: E402
from wire_server import Wire, serving  # noqa: E402

from medexam.cli import run_command  # noqa: E402
from medexam.serve import build_engine  # noqa: E402
from medexam.specs import EngineNeeds, ModelSpec  # noqa: E402

PAGE = ROOT / "docs" / "providers.md"
SERVERS = {
    "vLLM": lambda: Wire(sight="reads"),
    "llama.cpp's server": lambda: LlamaServer(),
    "Ollama": lambda: Ollama(),
    "TGI": lambda: TGI(),
}
"""Name in the list -> its wire."""
_DRAWN = {"max_tokens": 64, "temperature": 1.0, "seed": 0}
_EXAMPLE = [("system", "Answer."), ("user", "Which?"), ("assistant", REPLY), ("user", "And which?")]
_WAYS = {
    "free": ask(system="Answer.", **_DRAWN),
    "few-shot": ask(turns=[{"role": role, "content": text} for role, text in _EXAMPLE], **_DRAWN),
    "CoT": ask("Why? Which?", stop=("[[ ##",), **_DRAWN),
}
"""Way of asking -> a dialogue as programs write it."""
_CHOICE = ask(system="Answer.", opening="{Answer: ", choices=["1", "2", "3"], **_DRAWN)


def doctor(*arguments: str) -> dict[str, Any]:
    """What `medexam doctor --json` prints."""
    words, printed = sys.argv, io.StringIO()
    sys.argv = ["medexam", "doctor", *arguments, "--json"]
    try:
        with redirect_stdout(printed), suppress(SystemExit):
            run_command()
    finally:
        sys.argv = words
    found: dict[str, Any] = json.loads(printed.getvalue())
    return found


def ask_all(spec: ModelSpec, *, guided: bool) -> dict[str, str]:
    """Way of asking -> the words of the reply."""

    async def replies() -> dict[str, str]:
        engine = await build_engine(spec, EngineNeeds(chat=True, guided=guided))
        ways = {**_WAYS, **({"guided": _CHOICE} if guided else {})}
        try:
            return {way: (await reply(engine, dialogue)).words for way, dialogue in ways.items()}
        finally:
            await engine.aclose()

    return asyncio.run(replies())


def examine_provider(kind: type[ProviderWire]) -> tuple[dict[str, Any], dict[str, str]]:
    """What is found out about a hosted model, and what it replies to each way of asking."""
    with serve_provider(kind()) as wire:
        (record,) = doctor(wire.model_name)["models"]
        heat = record["fixed_temperature"]
        spec = ModelSpec(engine="litellm", name=wire.model_name, temperature=0.0 if heat is None else heat)
        return record, ask_all(spec, guided=record["guided_by"] is not None)


def provider_row(record: dict[str, Any]) -> str:
    """The entry of a hosted model, in Markdown."""
    heat, switches = record["fixed_temperature"], {"thinking", "reasoning_effort"} & {*record["fields"]}
    cells = {
        "guided": record["guided_by"] or "no",
        "likelihood": "no",
        "seeds": "yes" if record["seeds"] else "not seeded",
        "thinking": "yes" if record["thinks"] else "if told to" if switches else "no",
        "pictures": "yes" if record["sees"] else "no",
        "price": "known" if record["prompt_usd"] else "not known",
    }
    return _row(f"`{record['model']}`{'' if heat is None else f', at temperature {heat:g}'}", cells)


def examine_server(name: str) -> tuple[dict[str, Any], dict[str, str]]:
    """What is found out about a server of one's own, and what it replies to each way of asking."""
    with serving(SERVERS[name]()) as wire:
        (record,) = doctor(wire.address)["endpoints"]
        return record, ask_all(spec_of(wire), guided=False)


def server_row(name: str, record: dict[str, Any]) -> str:
    """The entry of a server, in Markdown."""
    cells = {
        "guided": record["guided_by"],
        "likelihood": ", ".join(record.get("reads", ())) or "no",
        "seeds": "sent",
        "thinking": "as the chat template",
        "pictures": "yes" if record["sees"] else "by model",
        "price": "none",
    }
    return _row(name, cells)


def _row(name: str, cells: dict[str, str]) -> str:
    """An entry of what it has."""
    words = [
        {"yes": what, "known": what}.get(value, value if what == "guided" else f"{what} ({value})")
        for what, value in cells.items()
        if value not in _ABSENT
    ]
    return f"- {name}: {', '.join(words)}"


_ABSENT = ("no", "not seeded", "not known", "none", "sent", "as the chat template", "by model")
"""What an entry leaves out; the page says so above the list."""
ENTRIES = "<!-- written by tests/serve/provider_table.py -->\n"


def write_page() -> None:
    """Write the list into the page, in the place of the one that stands there."""
    rows = [provider_row(examine_provider(kind)[0]) for kind in WIRES]
    rows += [server_row(name, examine_server(name)[0]) for name in SERVERS]
    before, rest = PAGE.read_text(encoding="utf-8").split(ENTRIES)
    _, after = rest.split("<!-- end -->\n")
    entries = "\n".join(rows)
    PAGE.write_text(f"{before}{ENTRIES}\n{entries}\n\n<!-- end -->\n{after}", encoding="utf-8")


if __name__ == "__main__":
    write_page()
