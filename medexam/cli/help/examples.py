"""An example of every command, which its `--help` shows and the command pages of the documentation repeat.

It knows names of commands and lines. A package's command has them in its documentation, after `For example:`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

EXAMPLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "init": ("medexam init", "medexam init my.csv", "medexam init mine.yaml --endpoint http://127.0.0.1:8000/v1"),
        "demo": ("medexam demo", "medexam demo --no-open"),
        "run": (
            "medexam run quickstart",
            "medexam run headqa_v1 --set program.kind=longest --limit 200",
            "medexam run headqa_v1 quickstart --set model.name=my-model",
            "medexam run --resume 3c2aae",
        ),
        "plan": ("medexam plan quickstart",),
        "report": (
            "medexam report runs --html report.html",
            "medexam report --watch 5050",
            "medexam report 3c2aae ff221f",
        ),
        "list": ("medexam list",),
        "show": ("medexam show 3c2aae", "medexam show 3c2aae headqa-v1/2016/biology/8"),
        "rm": ("medexam rm 3c2aae",),
        "compare": ("medexam compare 3c2aae ff221f", "medexam compare base new --fail-if worse:1.0"),
        "board": ("medexam board runs --html board.html",),
        "optimize": ("medexam optimize headqa_optimize --plan",),
        "track": ("medexam track 3c2aae",),
        "ui": ("medexam ui", "medexam ui --port 5001"),
        "schema": ("medexam schema > spec.schema.json", "medexam schema retrieve_verify --set k=7 > mine.yaml"),
        "serve": (
            "medexam serve --list",
            "medexam serve llama-3.1-8b --replicas 4 -- --max-model-len 8192",
            "medexam serve llama-3.1-70b --slurm --nodes 2 --span --print",
        ),
        "doctor": ("medexam doctor http://127.0.0.1:8000/v1", "medexam doctor --cluster --model llama-3.1-70b"),
        "data list": ("medexam data list",),
        "data stats": ("medexam data stats headqa_sample",),
        "data check": ("medexam data check headqa_sample",),
        "data show": ("medexam data show headqa_sample --limit 2",),
        "data fetch": ("medexam data fetch headqa_v2",),
        "index build": ("medexam index build --corpus passages.jsonl.gz --encoder minilm",),
        "index info": ("medexam index info passages-index",),
    }
)
"""Name of a command, groups before it -> lines that a reader can type, the shortest first."""


def add_examples(command: Any, name: str) -> Any:
    """Return `command` and those inside it, with their examples below their helps."""
    for inner, below in getattr(command, "commands", {}).items():
        add_examples(below, f"{name} {inner}")
    text, _, own = (command.help or "").partition("\n\nFor example:\n")
    if lines := EXAMPLES.get(name) or [line.strip() for line in own.splitlines() if line.strip()]:
        command.help, command.epilog = text, "\n".join(("Examples:", *(f"  {line}" for line in lines)))
    return command
