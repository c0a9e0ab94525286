"""What servers of OpenAI's API honour, as a Markdown table: asked if they run, read for the others.

    python bench/server_features.py 'vLLM=http://127.0.0.1:8000/v1' 'llama-cpp-python=http://127.0.0.1:8001/v1@NAME'

Each server is asked as by `medexam doctor`; `@NAME` names its model if it lists none, and `registry:FILE` stands for a
server that `medexam serve` started. Servers that are not given stand in
the table as their documentation has them, with its address and the day on which it was read.
"""

import argparse
import asyncio
import json
from dataclasses import dataclass
from typing import get_args

from medexam.serve.diagnostics.diagnosis import Diagnosis

from medexam.model_calls import ReadBy
from medexam.serve import diagnose, find_targets
from medexam.serve.choice_schema import SCHEMA_FORMS

COLUMNS = {
    "programs": "programs",
    "choice": "guided, `engine: vllm`",
    "schema": "guided, `engine: litellm`",
    "reads": "log-probabilities of given texts",
    "lists": "many prompts a request",
}
UNSAID = "not said"


@dataclass(frozen=True)
class Row:
    """One server."""

    name: str
    source: str
    """How the rest is known."""
    cells: dict[str, str]


READ = (
    Row(
        "llama.cpp's own `llama-server`",
        "read in [its README](https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md), November 2026",
        {
            "schema": "`json_schema`, `json_object`",
        },
    ),
    Row(
        "Ollama",
        "read in [its documentation](https://docs.ollama.com/api/openai-compatibility), November 2026",
        {"schema": "`response_format`"},
    ),
    Row(
        "TGI",
        "read in [its API](https://github.com/huggingface/text-generation-inference/blob/main/docs/openapi.json) and "
        "[issue 3058](https://github.com/huggingface/text-generation-inference/issues/3058), November 2026",
        {
            "schema": "`json_object with value`",
            "reads": "by its own `/generate`, which medexam does not ask",
            "lists": "yes",
        },
    ),
    Row(
        "SGLang",
        "read in [its documentation](https://docs.sglang.io/docs/advanced_features/structured_outputs.md), "
        "November 2026",
        {"schema": "`json_schema`", "reads": "by its own `/generate`, which medexam does not ask"},
    ),
)
"""What is not in the documentation is not said here either."""


def describe(name: str, found: Diagnosis) -> Row:
    """A row from what the doctor found out."""
    if found.seen is None:
        raise SystemExit(f"{name}: {found.fault}")
    verdicts = {check.what: check.verdict for check in found.api}
    forms = [f"`{form}`" for form in SCHEMA_FORMS if verdicts.get(f"choices by {form}") == "honoured"]
    reads = [check.way for check in found.reads if check.refusal is None]
    said = {"honoured": "yes", "ignored": "no, ignored", "refused": "no, refused"}
    cells = {
        "choice": f"yes, {found.seen.guided_by}" if found.seen.guided_by else "no",
        "schema": ", ".join(forms) or said[verdicts.get("choices by json_schema", "ignored")],
        "reads": ", ".join(reads) or "no",
        "lists": "yes" if found.seen.list_prompts else "no",
    }
    version = found.seen.server_version
    return Row(name, f"asked{f', {version}' if version else ''}", cells)


def list_programs(cells: dict[str, str]) -> str:
    """Which programs a server's features let run."""
    guided = any(cells.get(key, "no")[:2] != "no" for key in ("choice", "schema"))
    # Only vLLM's ways of reading begin with their name.
    likelihood = cells.get("reads", "no").startswith(get_args(ReadBy))
    return ", ".join(["free", *["guided"] * guided, *["`likelihood`"] * likelihood])


def ask(named: str) -> Row:
    """The row of a server that runs."""
    name, _, address = named.partition("=")
    address, _, model = address.partition("@")
    report = asyncio.run(diagnose(find_targets([address], model=model or None), burst_s=0))
    return describe(name, report.diagnoses[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="*", metavar="NAME=ENDPOINT[@MODEL]")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON instead")
    asked = parser.parse_args()
    rows = [ask(named) for named in asked.servers]
    rows += [row for row in READ if row.name not in {one.name for one in rows}]
    if asked.json:
        print(json.dumps([vars(row) for row in rows], indent=1))
        return
    print(f"| server | {' | '.join(COLUMNS.values())} | how it is known |")
    print("|---|" + "---|" * (len(COLUMNS) + 1))
    for row in rows:
        cells = {"programs": list_programs(row.cells), **row.cells}
        print(f"| {row.name} | {' | '.join(cells.get(key, UNSAID) for key in COLUMNS)} | {row.source} |")


if __name__ == "__main__":
    main()
