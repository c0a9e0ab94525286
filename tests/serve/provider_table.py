"""The list of docs/providers.md: what each provider and server takes, found out on its wire.

`python tests/serve/provider_table.py` writes it anew.
"""

import asyncio
import sys
from pathlib import Path

from dspy.lm15 import Config, Message, Request

from asked import complete

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "serve"), str(ROOT / "tests")]

from other_servers import TGI, LlamaServer, Ollama  # noqa: E402
from provider_wire import REPLY, ProviderWire, serve_provider  # noqa: E402
from provider_wires import WIRES  # noqa: E402
from wire_server import Wire, serving  # noqa: E402

from medexam.serve import build_engine, diagnose, find_targets  # noqa: E402
from medexam.serve.diagnostics.api_check import honours_schema  # noqa: E402
from medexam.serve.diagnostics.hosted import examine  # noqa: E402
from medexam.specs import EngineNeeds, ModelSpec  # noqa: E402

PAGE = ROOT / "docs" / "providers.md"
SERVERS = {
    "vLLM": lambda: Wire(sight="reads"),
    "llama.cpp's server": lambda: LlamaServer(),
    "Ollama": lambda: Ollama(),
    "TGI": lambda: TGI(),
}
"""Name in the list -> its wire."""
_CONFIG = {"max_tokens": 64, "temperature": 1.0, "seed": 0}
_WAYS = {
    "free": Request(model="m", system="Answer.", messages=(Message.user("Which?"),), config=Config(**_CONFIG)),
    "few-shot": Request(
        model="m",
        system="Answer.",
        messages=(Message.user("Which?"), Message.assistant(REPLY), Message.user("And which?")),
        config=Config(**_CONFIG),
    ),
    "CoT": Request(
        model="m", messages=(Message.user("Why? Which?"),), config=Config(**{**_CONFIG, "stop": ("[[ ##",)})
    ),
}
"""Way of asking -> a request as programs write it."""


async def _ask(spec: ModelSpec) -> dict[str, str]:
    """Way of asking -> whether a reply came."""
    engine = await build_engine(spec, EngineNeeds(chat=True))
    try:
        return {way: "yes" if (await complete(engine, request)).text else "no" for way, request in _WAYS.items()}
    finally:
        await engine.aclose()


async def provider_row(kind: type[ProviderWire]) -> str:
    """The entry of a provider, in Markdown."""
    with serve_provider(kind()) as wire:
        diagnosis = await examine(wire.model_name)
        assert diagnosis.fault is None, diagnosis.fault
        record = diagnosis.capabilities
        spec = ModelSpec(engine="litellm", name=wire.model_name, temperature=record.fixed_temperature or 0.0)
        ways = await _ask(spec)
    told = record.describe()
    cells = {
        **ways,
        "guided": record.guided_by or "no",
        "likelihood": "no",
        "samples": "a request each",
        "seeds": "yes" if record.seeds else "not seeded",
        "thinking": told["thinking"],
        "pictures": told["pictures"],
        "batch": told["batches"],
        "price": "known" if record.prompt_usd else "not known",
    }
    heat = "" if record.fixed_temperature is None else f", at temperature {record.fixed_temperature:g}"
    return _row(f"`{record.model}`{heat}", cells)


async def server_row(name: str) -> str:
    """The entry of a server of one's own, in Markdown."""
    with serving(SERVERS[name]()) as wire:
        report = await diagnose(find_targets([wire.address]), burst_s=0)
        (found,) = report.diagnoses
        seen = found.seen
        assert seen is not None
        ways = await _ask(ModelSpec(engine="vllm", endpoints=(wire.address,)))
    api = {check.what: check.verdict for check in found.api}
    several = "one request" if seen.several_replies else "a request each"
    cells = {
        **ways,
        "guided": seen.guided_by or f"engine litellm: {honours_schema(found.api) or 'words'}",
        "likelihood": ", ".join(sorted(seen.reads)) or "no",
        "samples": several,
        "seeds": "yes" if api.get("seed") == "honoured" else "sent",
        "thinking": "as the chat template",
        "pictures": "yes" if seen.sees else "by model",
        "batch": "`run-batch`" if seen.is_vllm else "no",
        "price": "none",
    }
    return _row(name, cells)


def _row(name: str, cells: dict[str, str]) -> str:
    """An entry of what it has; a way of asking that brings no reply is named."""
    words = [f"no {way}" for way in _WAYS if cells[way] == "no"]
    for what, value in cells.items():
        if what not in _WAYS and value not in _ABSENT:
            words.append({"yes": what, "known": what}.get(value, value if what == "guided" else f"{what} ({value})"))
    return f"- {name}: {', '.join(words)}"


_ABSENT = ("no", "not seeded", "not known", "none", "a request each", "sent", "as the chat template", "by model")
"""What an entry leaves out; the page says so above the list."""
ENTRIES = "<!-- written by tests/serve/provider_table.py -->\n"


def write_page() -> None:
    """Write the list into the page, in the place of the one that stands there."""

    async def rows() -> list[str]:
        return [*[await provider_row(kind) for kind in WIRES], *[await server_row(name) for name in SERVERS]]

    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(ENTRIES)
    _, after = rest.split("<!-- end -->\n")
    entries = "\n".join(asyncio.run(rows()))
    PAGE.write_text(f"{before}{ENTRIES}\n{entries}\n\n<!-- end -->\n{after}", encoding="utf-8")


if __name__ == "__main__":
    write_page()
