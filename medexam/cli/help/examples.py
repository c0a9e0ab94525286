"""An example of every command, which its `--help` shows and the command pages of the documentation repeat.

It knows names of commands and lines; it parses nothing.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

EXAMPLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "init": ("medexam init", "medexam init mine.yaml --endpoint http://127.0.0.1:8000/v1"),
        "demo": ("medexam demo", "medexam demo --no-open"),
        "run": (
            "medexam run quickstart",
            "medexam run headqa_v1 --set program.kind=longest --limit 200",
            "medexam run headqa_v1 cliniqlink --set model.name=my-model",
            "medexam run --resume 3c2aae",
        ),
        "plan": ("medexam plan quickstart",),
        "report": ("medexam report runs --html report.html", "medexam report 3c2aae ff221f"),
        "list": ("medexam list",),
        "show": ("medexam show 3c2aae", "medexam show 3c2aae headqa-v1/2016/biology/8"),
        "watch": ("medexam watch",),
        "rm": ("medexam rm 3c2aae",),
        "compare": ("medexam compare 3c2aae ff221f", "medexam compare base new --fail-if worse:1.0"),
        "import": ("medexam import samples_headqa_en.jsonl --dataset headqa_v1",),
        "export": ("medexam export 3c2aae --to lm-eval --out export",),
        "board": ("medexam board runs --html board.html",),
        "reproduce": ("medexam reproduce --list", "medexam reproduce headqa-v1/table-5 --plan"),
        "optimize": ("medexam optimize headqa_optimize --plan",),
        "finetune": ("medexam finetune --model xlm-roberta-base --train spans.jsonl --out reader",),
        "finetune-grid": ("medexam finetune-grid casimedicos --out grid --plan",),
        "track": ("medexam track 3c2aae",),
        "ui": ("medexam ui", "medexam ui --port 5001"),
        "show-program": ("medexam show-program retrieve_verify --set k=7 > mine.yaml",),
        "schema": ("medexam schema > spec.schema.json",),
        "serve": (
            "medexam serve --list",
            "medexam serve llama-3.1-8b --replicas 4",
            "medexam serve llama-3.1-70b --slurm --nodes 2 --span --print",
        ),
        "doctor": ("medexam doctor http://127.0.0.1:8000/v1", "medexam doctor --cluster --model llama-3.1-70b"),
        "data init": ("medexam data init my.csv",),
        "data build": ("medexam data build --booklet 2020.pdf --key 2020.csv --name biology-2020 --out exam",),
        "data translate": ("medexam data translate headqa_v1 --from es --to en --limit 30",),
        "data quality": ("medexam data quality runs/translation --reference",),
        "data variants": ("medexam data variants es_train_casimedicos_squad.json --out train",),
        "data list": ("medexam data list",),
        "data stats": ("medexam data stats headqa_sample",),
        "data check": ("medexam data check headqa_sample",),
        "data show": ("medexam data show headqa_sample --limit 2",),
        "data fetch": ("medexam data fetch headqa_v2",),
        "index build": ("medexam index build --corpus passages.jsonl.gz --encoder minilm",),
        "index info": ("medexam index info passages-index",),
        "index map": ("medexam index map passages-index",),
        "audit export": ("medexam audit export 3c2aae --out audit --per-group 10 --raters 2",),
        "audit judge": ("medexam audit judge 3c2aae --model openai/gpt-4o-mini --out judged",),
        "audit import": ("medexam audit import audit --markdown audit.md",),
        "cliniqlink score": ("medexam cliniqlink score teams/one --feedback feedback.md",),
        "cliniqlink run": ("medexam cliniqlink run team.sif --out teams/one --minutes 240 --gpus 0",),
        "cliniqlink board": ("medexam cliniqlink board teams --by paper",),
    }
)
"""Name of a command, groups before it -> lines that a reader can type, the shortest first."""


def add_examples(command: Any, name: str) -> Any:
    """Return `command` and those inside it, with their examples below their helps."""
    for inner, below in getattr(command, "commands", {}).items():
        add_examples(below, f"{name} {inner}")
    if name in EXAMPLES:
        command.epilog = "\n".join(("Examples:", *(f"  {line}" for line in EXAMPLES[name])))
    return command
