"""What differs when the tests type a command instead of a reader, page by page."""

from collections.abc import Mapping
from typing import NamedTuple

EVERY = "*"
"""Stands for every page."""

WORDS: Mapping[str, Mapping[str, str]] = {
    EVERY: {
        "~": "home",
        "/shared": "shared",
        "http://gpu1:8000/v1": "{LLAMA}",
        "http://gpu1:8001/v1": "{LLAMA_BASE}",
        "http://127.0.0.1:8080/v1": "{SMOLLM2}",
        "FIRST:6379": "127.0.0.1:1",
    },
    "docs/audit.md": {"RUN...": "kept/kept-*zero_shot*-en-*"},
    "docs/benchmarks.md": {"FILE": "medqa.csv"},
    "docs/casimedicos.md": {"FOLDER": "encoder"},
    "docs/cliniqlink.md": {"RUN...": "runs/cliniqlink-*"},
    "docs/combining.md": {"RUN": "kept/kept-longest-en-* | kept/kept-random-en-* | kept/kept-*-zero_shot-en-*"},
    "docs/composing.md": {"FOLDER": "runs/debate-gepa-[…]", "PASSAGES": "passages.jsonl.gz"},
    "docs/contamination.md": {
        "CONTROL": "kept/kept-longest-en-*",
        "RUN": "kept/kept-*-likelihood*-en-* | kept/kept-random-en-*",
    },
    "docs/optimizing.md": {
        "FOLDER": "runs/headqa_optimize-random_search-[…]",
        "RUN": "runs/headqa_optimize-SmolLM2*-zero_shot_guided-en-*",
        "OPTIMIZED-RUN": "runs/headqa_optimize-SmolLM2*optimized*",
    },
    "docs/protocol.md": {"RUN-FREE": "kept/kept-*zero_shot-en-*", "RUN-GUIDED": "kept/kept-*zero_shot_guided-en-*"},
    "docs/readers.md": {
        "program.span_reader.reader=FOLDER": "program.span_reader.reader=span_reader",
        "program.entailment.reader=FOLDER": "program.entailment.reader=entailment_reader",
        "[…]": "--set program.entailment.reader=entailment_reader",
        "FOLDER": "encoder",
        "RUN...": "runs/headqa_v1_readers-*",
    },
    "docs/referee.md": {
        "BASE": "kept/kept-longest-en-*",
        "NEW": "kept/kept-random-en-*",
        "SPEC": "kept.yaml",
        "history/": "kept/",
        "three/runs/three-*": "kept/kept-*zero_shot-en-*",
        "three/lm_eval/*/samples_*.jsonl": "samples_headqa_en_2026-*.jsonl",
        "three/inspect/*.eval": "log.eval",
        "100": "4",
        "runs/": "kept/kept-*-en-*",
        "runs/study/study-*-en-*": "kept/kept-*-en-*",
    },
    "docs/reproducing.md": {
        "model={engine: embedded}": """'model={{engine: vllm, endpoints: ["{LLAMA}"]}}'""",
        "FacebookAI/xlm-roberta-large": "encoder",
    },
    "docs/retrieval.md": {"DIR": "cache/indexes/*"},
    "docs/study.md": {"runs/study/study-*-en-*": "runs/study/study-*zero_shot*-en-*"},
    "docs/tutorial.md": {"FOLDER": "runs/better-labeled-[…]"},
    "docs/translating.md": {
        "FOLDER": "runs/translate-headqa_v1-es-en-Llama-3.1-8B-Llama-3.1-8B-Instruct",
        "RUN_ES": "kept/kept-longest-es-*",
        "RUN_EN": "kept/kept-longest-en-*",
    },
    "docs/your-own-parts.md": {"RUN": "kept/kept-*zero_shot-en-*"},
    "docs/your-own.md": {"FOLDER": "runs/your_own-bootstrap-[…]", "PASSAGES": "passages.jsonl.gz"},
}
"""Page -> what it prints -> what is typed instead; of several behind `|`, each is typed once, in turn."""

TRACKED = ("docs/tutorial.md", "docs/optimizing.md")
"""Pages whose runs are sent to MLflow: this takes half of the time of a small run, and has tests of its own."""

_SERVED = """--set 'model={{engine: vllm, endpoints: ["{LLAMA}"]}}'"""

ONCE: Mapping[tuple[str, ...], str] = {("demo",): "demo"}
"""Words of a command that reads nothing of its folder -> the folder that it writes: it runs once for all pages."""

BEFORE: Mapping[str, tuple[str, ...]] = {
    "docs/referee.md": (
        f"medexam run headqa_v1 --set dataset.language=en --set program.kind=likelihood --limit 12 {_SERVED}",
    ),
}
"""Page -> what a reader has typed before."""

MORE: Mapping[str, str] = {
    "run": "--limit 2",
    "run --resume": "",
    "run headqa_sample --set program.kind=longest": "",
    "run headqa_sample --set program.kind=random": "",
    "run casimedicos_extract": "--limit 1 --set program.max_tokens=8",
    "run casimedicos_extract --set dataset.path": "--limit 2",
    "run headqa_sample --limit 5": "--limit 1 --set model.max_tokens=8",
    "run headqa_rag": f"--limit 2 {_SERVED}",
    "run cliniqlink": f"--limit 2 {_SERVED}",
    "data translate headqa_v1 --from": "--limit 12",
    "data quality runs": "--bert-model encoder --bert-layer 1",
    "run altered.yaml": f"--limit 2 {_SERVED}",
    "run reasoning.yaml": f"--limit 4 {_SERVED}",
    "run strategies.yaml": "--limit 1 --set program.chain_of_thought.max_tokens=8",
    "run headqa_v1 --set dataset.language=en --set dataset.years=2016": "--limit 1",
    "run headqa_sample --set program.orders": "--limit 1",
    "run study": f"--limit 2 {_SERVED}",
    "run study --runs-dir": "--limit 2",
    "run examples": f"--limit 2 {_SERVED}",
    "run examples/plugin": "--limit 2",
    "optimize headqa_optimize": (
        "--set optimizer.candidates=2 --set optimizer.attempts=2 --set optimizer.validation.limit=4 " + _SERVED
    ),
    "optimize debate": f"--set optimizer.train.limit=4 --set optimizer.validation.limit=4 {_SERVED}",
    "optimize examples": f"--set optimizer.attempts=2 --set optimizer.validation.limit=2 {_SERVED}",
    "reproduce headqa": "--limit 2",
    "reproduce --list": "",
    "doctor http://127.0.0.1:8080": "--burst 0.2",
    "index map": "--limit 40",
    "serve": "--port {PORT}",
    "serve llama-3.1-70b": "",
    "serve smollm2-cpu --slurm": "",
}
"""The beginning of a command -> what is added, so that it takes a second; the longest beginning counts."""


class Refusal(NamedTuple):
    """How a command ends that cannot do its work here."""

    code: int
    says: str
    """A part of its last line."""
    why: str


_HUB = "HF_HUB_OFFLINE"

REFUSED: Mapping[str, Refusal] = {
    "medexam doctor anthropic/claude-sonnet-4-5": Refusal(2, "needs a key: set ANTHROPIC_API_KEY", "a key"),
    "medexam data variants es_train_casimedicos_squad.json --out train": Refusal(
        2, "CasiMedicos-Arg holds no spans", "the hub's spans"
    ),
    "medexam data fetch headqa_v1": Refusal(2, _HUB, "the hub"),
    "medexam data fetch headqa_v2": Refusal(2, _HUB, "the hub"),
    "medexam run headqa_v2_retrieval": Refusal(2, _HUB, "the hub"),
    "medexam run medqa": Refusal(2, _HUB, "the hub"),
    "medexam run mmlu --set dataset.disciplines=college_medicine": Refusal(2, _HUB, "the hub"),
    "medexam run global_mmlu --set dataset.hub.config=it --set dataset.language=it": Refusal(2, _HUB, "the hub"),
    "medexam run headqa_v1_readers": Refusal(2, _HUB, "the hub"),
    "medexam compare CONTROL RUN --overlap MedRAG/textbooks --overlap-words 8": Refusal(2, _HUB, "the hub"),
    "medexam run headqa_v1 --executor ray --ray-address FIRST:6379 --runs-dir /shared/runs": Refusal(
        2, "Ray cluster", "a cluster"
    ),
    "medexam index build --corpus /shared/pubmed --encoder medcpt --executor ray --ray-address FIRST:6379"
    "  --dtype float16 --shards 36 --out /shared/index": Refusal(2, _HUB, "the hub, and a cluster"),
    "srun --nodes 2 --ntasks-per-node 1 --gpus-per-node 2 medexam doctor registry:/shared/me/servers.json --cluster"
    " --model llama-3.1-70b": Refusal(2, "this process is not in a Slurm job", "a step of a job"),
    "medexam cliniqlink run team.sif --engine apptainer --out teams/three --minutes 240 --memory 64g --gpus 0": Refusal(
        3, "medexam cliniqlink score teams/three", "a container"
    ),
    "medexam compare BASE NEW --fail-if worse:1.0": Refusal(1, "FAILED", "few questions: the gate does not pass"),
    "MEDEXAM_VLLM_PYTHON=~/vllm/bin/python medexam run headqa_sample --set"
    " 'model={engine: batch, profile: smollm2-cpu}'": Refusal(2, "does not run as Python", "vLLM itself"),
}
"""What is printed -> how it ends here."""
