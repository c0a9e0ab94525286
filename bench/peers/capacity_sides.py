"""The clients whose capacity is compared: what each is started with, and how many questions it says it answered.

Each side is a process of its own that reads the questions from a file, asks a server and exits. Nothing here measures.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

PEERS = Path(__file__).parent
MODEL = "smollm2"
INSTRUCTIONS = (
    "You are an expert in specialized scientific and health disciplines. Respond to the following multiple-choice "
    "question:\nProvide the answer in the following JSON format: {Answer: [number]}.\n"
    "For example, if the answer is 1, write: {Answer: 1}"
)
"""As long as medexam's own."""

Settings = Mapping[str, str | int]


@dataclass(frozen=True)
class Workload:
    """The same questions in the forms that the sides read."""

    number: int
    exams: Path
    """HEAD-QA v1's own form."""
    rows: Path
    """One object a line: `key`, `instructions`, `question` as shown, `stem`, `options`, `gold`, and its `place`."""


class Side(Protocol):
    """A client in its whole path, from the questions on disk to the scores."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def variants(self) -> Sequence[Settings]:
        """Settings to try; the fastest is kept."""

    @property
    def scale(self) -> float:
        """Multiplies the numbers of questions, so that a slow side is through in time and a fast one is timed well."""

    def command(self, work: Workload, folder: Path, endpoint: str, settings: Settings) -> list[str]:
        """What to start; `folder` is empty and its own."""

    def environment(self, folder: Path) -> Mapping[str, str]:
        """Variables to add to this process's own."""

    def answered(self, folder: Path) -> int:
        """How many questions it says it answered; its standard output is `folder / "stdout"`."""

    def versions(self) -> dict[str, str]:
        """Versions of what it is made of."""


@dataclass(frozen=True)
class MedexamSide:
    """`medexam run`: also writes each prediction to the disk, and tables, metrics and an MLflow run."""

    answer_format: str
    variants: ClassVar[Sequence[Settings]] = ({},)
    scale: ClassVar[float] = 1

    @property
    def name(self) -> str:
        return f"medexam_{self.answer_format}"

    def parts(self, endpoint: str) -> dict[str, Any]:
        """The model and the program of its spec."""
        return {
            "model": {"engine": "vllm", "endpoints": [endpoint]},
            "program": {"kind": "zero_shot", "answer_format": self.answer_format},
        }

    def command(self, work: Workload, folder: Path, endpoint: str, settings: Settings) -> list[str]:
        parts = self.parts(endpoint)
        spec = {
            "name": "capacity",
            "dataset": {"name": "headqa_v1", "language": "en", "path": str(work.exams)},
            **parts,
            "program": {**parts["program"], **settings},
        }
        file = folder / "spec.yaml"
        file.write_text(json.dumps(spec), encoding="utf-8")
        return [*self.run(folder), str(file)]

    def run(self, folder: Path) -> list[str]:
        """`medexam run` with its places and without a spec."""
        program = str(Path(sys.executable).with_name("medexam"))
        return [program, "run", "--runs-dir", str(folder / "runs"), "--json"]

    def environment(self, folder: Path) -> Mapping[str, str]:
        del folder
        return {}

    def answered(self, folder: Path) -> int:
        answered: int = read_report(folder)[0]["metrics"]["n"]
        return answered

    def versions(self) -> dict[str, str]:
        return ask_versions(Path(sys.executable), "medexam", "dspy", "litellm", "mlflow")


@dataclass(frozen=True)
class ModuleSide(MedexamSide):
    """`medexam run` with a module of the user's own, through litellm or `engine: vllm`; see `direct_module.py`."""

    answer_format: str = "module"
    engine: str = "litellm"
    scale: ClassVar[float] = 0.25

    @property
    def name(self) -> str:
        return "medexam_module" if self.engine == "litellm" else f"medexam_module_{self.engine}"

    def parts(self, endpoint: str) -> dict[str, Any]:
        """The model and the program of its spec."""
        named = {"name": f"openai/{MODEL}"} if self.engine == "litellm" else {}
        return {
            "model": {"engine": self.engine, "endpoints": [endpoint], "max_tokens": 64, **named},
            "program": {
                "kind": f"{PEERS / 'direct_module.py'}:Direct",
                "args": {"instructions": INSTRUCTIONS},
            },
        }


@dataclass(frozen=True)
class DSPySide:
    """Stock DSPy; see `dspy_driver.py`."""

    name: ClassVar[str] = "dspy"
    scale: ClassVar[float] = 0.25
    variants: ClassVar[Sequence[Settings]] = (
        {"mode": "evaluate", "engine": "auto", "in-flight": 16},
        {"mode": "evaluate", "engine": "auto", "in-flight": 64},
        {"mode": "evaluate", "engine": "litellm", "in-flight": 16},
        {"mode": "gather", "engine": "auto", "in-flight": 64},
    )

    def command(self, work: Workload, folder: Path, endpoint: str, settings: Settings) -> list[str]:
        del folder
        options = [f"--{key}={value}" for key, value in settings.items()]
        return [sys.executable, str(PEERS / "dspy_driver.py"), str(work.rows), endpoint, *options]

    def environment(self, folder: Path) -> Mapping[str, str]:
        del folder
        return {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}

    def answered(self, folder: Path) -> int:
        answered: int = read_report(folder)["answered"]
        return answered

    def versions(self) -> dict[str, str]:
        return ask_versions(Path(sys.executable), "dspy", "litellm")


@dataclass(frozen=True)
class InspectSide:
    """inspect-ai; see `inspect_driver.py`."""

    python: Path
    name: ClassVar[str] = "inspect_ai"
    scale: ClassVar[float] = 0.1
    variants: ClassVar[Sequence[Settings]] = ({"connections": 32}, {"connections": 256})

    def command(self, work: Workload, folder: Path, endpoint: str, settings: Settings) -> list[str]:
        options = [f"--{key}={value}" for key, value in settings.items()]
        driver = str(PEERS / "inspect_driver.py")
        return [str(self.python), driver, str(work.rows), endpoint, f"--log-dir={folder / 'logs'}", *options]

    def environment(self, folder: Path) -> Mapping[str, str]:
        del folder
        return {"INSTANT_API_KEY": "EMPTY"}

    def answered(self, folder: Path) -> int:
        answered: int = read_report(folder)["answered"]
        return answered

    def versions(self) -> dict[str, str]:
        return ask_versions(self.python, "inspect-ai", "openai")


# The questions as other sides are asked them.
GENERATE_YAML = """\
task: capacity
dataset_path: json
dataset_kwargs: {{data_files: {{test: {file}}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{instructions}}}}\\n\\n{{{{question}}}}\\nAnswer:"
doc_to_target: gold
generation_kwargs: {{until: ["\\n"], max_gen_toks: 1, do_sample: false}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
"""
# The protocol of the harness's own HEAD-QA tasks.
LOGLIKELIHOOD_YAML = """\
task: capacity
dataset_path: json
dataset_kwargs: {{data_files: {{test: {file}}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "Question: {{{{stem}}}}\\nAnswer:"
doc_to_choice: options
doc_to_target: place
metric_list: [{{metric: acc, aggregation: mean, higher_is_better: true}}]
"""


@dataclass(frozen=True)
class LMEvalSide:
    """lm-evaluation-harness on its `local-completions` model; see `lm_eval_capacity_driver.py`."""

    python: Path
    tokenizer: Path
    generates: bool
    """Whether it asks for one token behind the question, or for the log-probabilities of all options' texts."""
    variants: ClassVar[Sequence[Settings]] = (
        {"batch_size": 1, "num_concurrent": 64},
        {"batch_size": 32, "num_concurrent": 8},
        {"batch_size": 128, "num_concurrent": 8},
    )

    @property
    def name(self) -> str:
        return "lm_eval_generate" if self.generates else "lm_eval_loglikelihood"

    @property
    def scale(self) -> float:
        return 1 if self.generates else 0.5

    def command(self, work: Workload, folder: Path, endpoint: str, settings: Settings) -> list[str]:
        task = GENERATE_YAML if self.generates else LOGLIKELIHOOD_YAML
        (folder / "task.yaml").write_text(task.format(file=json.dumps(str(work.rows))), encoding="utf-8")
        model_args = {
            "model": MODEL,
            "base_url": f"{endpoint}/completions",
            "tokenizer": str(self.tokenizer),
            "tokenizer_backend": "huggingface",
            # Text is the faster where nothing has to be counted.
            "tokenized_requests": not self.generates,
            "max_length": 8192,
            "num_concurrent": settings["num_concurrent"],
        }
        driver, task_options = str(PEERS / "lm_eval_capacity_driver.py"), [str(folder), "--task=capacity"]
        batch = f"--batch-size={settings['batch_size']}"
        return [str(self.python), driver, *task_options, f"--model-args={json.dumps(model_args)}", batch]

    def environment(self, folder: Path) -> Mapping[str, str]:
        offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
        return {**offline, "HF_DATASETS_CACHE": str(folder / "datasets"), "OPENAI_API_KEY": "EMPTY"}

    def answered(self, folder: Path) -> int:
        answered: int = read_report(folder)["answered"]
        return answered

    def versions(self) -> dict[str, str]:
        return ask_versions(self.python, "lm-eval", "transformers", "aiohttp")


def read_report(folder: Path) -> Any:
    """What a side printed: JSON."""
    return json.loads((folder / "stdout").read_text(encoding="utf-8"))


def find_tokenizer() -> Path:
    """SmolLM2's folder; asked of another process, for a bench that stays small."""
    code = "from medexam.serve.local_model.weights import smollm2_folder; print(smollm2_folder())"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return Path(said.stdout.strip())


def ask_versions(python: Path, *names: str) -> dict[str, str]:
    """Versions of the packages that an interpreter has."""
    code = (
        "import json, sys; from importlib.metadata import version; print(json.dumps(list(map(version, sys.argv[1:]))))"
    )
    said = subprocess.run([str(python), "-c", code, *names], check=True, capture_output=True, text=True)
    return dict(zip(names, json.loads(said.stdout), strict=True))
