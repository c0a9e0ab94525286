"""Runs the benches of speed and writes their table into `docs/evidence.md`; what `make bench` calls.

    python bench/table.py [--endpoint http://127.0.0.1:8000/v1] [--only-write]

The client's capacity, its growth and two runs at once are measured always, the live server's row with `--endpoint`.
Each bench's document is kept in `bench/results/`, and the table is written from what lies there, so that a part can be
measured alone.
"""

import argparse
import json
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BENCH = Path(__file__).parent
RESULTS = BENCH / "results"
PAGE = BENCH.parent / "docs" / "evidence.md"
OPENING, CLOSING = "<!-- written by bench/table.py -->\n", "<!-- end -->\n"

COMMANDS = {
    "client": ["client_capacity.py", "compare"],
    "scale": ["client_capacity.py", "scale"],
    "pair": ["client_capacity.py", "pair"],
    "vllm": ["vllm_speed.py"],
}
SIDES = {
    "medexam_guided": "medexam, guided",
    "medexam_free": "medexam, free replies",
    "medexam_module": "medexam, a module through litellm",
    "medexam_module_vllm": "medexam, a module by `engine: vllm`",
    "dspy": "stock DSPy",
    "inspect_ai": "inspect-ai",
    "lm_eval_generate": "lm-eval, generating",
    "lm_eval_loglikelihood": "lm-eval, log-likelihoods",
}


def measure(name: str, *options: str) -> None:
    """Run one bench and keep its document."""
    script, *rest = COMMANDS[name]
    done = subprocess.run([sys.executable, str(BENCH / script), *rest, *options], check=True, stdout=subprocess.PIPE)
    document = {"machine": describe_machine(), **json.loads(done.stdout)}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def describe_machine() -> str:
    """The processor's name and how many of its cores there are."""
    names = [line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    return f"{len(names)} cores of {names[0]}" if names else platform.processor()


def write_table() -> None:
    """Print the table, and put it between the page's marks."""
    page = PAGE.read_text(encoding="utf-8")
    table = "\n".join(lines())
    sys.stdout.write(table + "\n")
    before, rest = page.split(OPENING)
    _, after = rest.split(CLOSING)
    PAGE.write_text(before + OPENING + "\n" + table + "\n\n" + CLOSING + after, encoding="utf-8")


def lines() -> Iterator[str]:
    """The tables, from the documents that lie there."""
    known = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("*.json"))}
    if "client" in known:
        yield from client_lines(known["client"])
    if "scale" in known:
        yield from scale_lines(known["scale"])
    if "pair" in known:
        yield from pair_lines(known["pair"])
    if "vllm" in known:
        yield from vllm_lines(known["vllm"])


def client_lines(document: dict[str, Any]) -> Iterator[str]:
    """Each client's capacity, and medexam's beside it."""
    sides = document["sides"]
    yield f"Client capacity, {document['machine']}, load average {document['load_average']} at the start:"
    yield ""
    yield "| client | questions/s | in rounds | processor ms a question | peak MB | guided medexam to it |"
    yield "|---|--:|--:|--:|--:|--:|"
    ratios = document["ratio_to_peer"].get("medexam_guided", {})
    for name, side in sides.items():
        ratio = f"{ratios[name]:.1f}" if name in ratios else ""
        yield (
            f"| {SIDES[name]} | {side['questions_per_s']:,.0f} "
            f"| {min(side['each_round']):,.0f} to {max(side['each_round']):,.0f} "
            f"| {side['client_cpu_ms_a_question']:.2f} "
            f"| {side['peak_mb']:,.0f} | {ratio} |"
        )

    yield ""
    ahead = [f"{SIDES[name]} (by {1 / ratio:.2f} times)" for name, ratio in ratios.items() if ratio < 1]
    yield f"Faster than guided medexam: {', '.join(ahead) or 'no peer'}."
    yield "Settings and versions: `bench/results/client.json`."


def scale_lines(document: dict[str, Any]) -> Iterator[str]:
    """One run beside one ten times as large."""
    yield ""
    yield "| questions of one run | questions/s while asking | seconds in all | peak MB |"
    yield "|--:|--:|--:|--:|"
    for run in document["runs"]:
        yield f"| {run['questions']:,} | {run['questions_per_s']:,.0f} | {run['wall_s']} | {run['peak_mb']:,.0f} |"
    again = document["again_s"]
    yield ""
    yield (
        f"Running the finished {document['again_of']:,} again takes {again['run']} s, `--resume` {again['resume']} s."
    )


def pair_lines(document: dict[str, Any]) -> Iterator[str]:
    """Two runs at once beside one alone."""
    yield ""
    yield f"| runs at once, {document['questions']:,} questions each | questions/s together | to one alone |"
    yield "|--:|--:|--:|"
    yield f"| 1 | {document['alone_questions_per_s']} | |"
    yield f"| 2 | {document['together_questions_per_s']} | {document['ratio']:.2f} |"
    yield ""
    yield (
        f"Both ask a server that serves {document['server_questions_per_s']:.0f} questions a second, median of "
        f"{document['rounds']} rounds."
    )


def vllm_lines(document: dict[str, Any]) -> Iterator[str]:
    """Ways to ask one live server."""
    ways = {
        "engine": "medexam",
        "plain": "an aiohttp loop, the same requests",
        "grammar": "an aiohttp loop, chat with a grammar, all at once",
        "dspy": "stock DSPy, 16 threads",
    }
    yield ""
    yield (
        f"Guided answers from {document['server']} (SmolLM2-135M on the same cores), {document['questions']} "
        f"questions, median of {document['rounds']} rounds:"
    )
    yield ""
    yield "| asked by | questions/s | medexam to it | legal answers |"
    yield "|---|--:|--:|--:|"
    for name, speed in document["questions_per_s"].items():
        ratio = f"{document['ratio_to'][name]:.2f}" if name in document["ratio_to"] else ""
        yield f"| {ways[name]} | {speed} | {ratio} | {document['legal_answers'][name]} of {document['asked_each']} |"


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--endpoint", help="a live vLLM server of SmolLM2, for its row")
    parser.add_argument("--only-write", action="store_true", help="measure nothing")
    arguments = parser.parse_args()
    if not arguments.only_write:
        measure("client")
        measure("scale")
        measure("pair")
        if arguments.endpoint:
            measure("vllm", arguments.endpoint)
    write_table()


if __name__ == "__main__":
    main()
