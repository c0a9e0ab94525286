"""Fixtures that every wing's tests share: a question, what takes long to make, and an environment without traps."""

import asyncio
import gc
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import settings

from medexam.questions import Discipline, Exam, Option, Question

LONG = (
    "tests/browser/",
    "companions/medexam_companions/papers/tests/test_index_map.py",
    "tests/embedded/",
    "tests/experiments/",
    "tests/ray/",
)
"""What takes longest begins first: a file that began last would keep one worker while the others have no work."""
WHOLE = frozenset(("medexam", "runs_dir", "pip_and_setuptools", "tiny_llama"))
"""Fixtures of whole commands, of MLflow's store, and of what takes seconds to make: `make check` leaves them out."""

FAILURE = {"error": "server"}
"""A reply of a script that fails."""

# Drawn inputs are the same in every run of the suite; `make nightly` draws others.
settings.register_profile("suite", derandomize=True, database=None, deadline=None)
settings.load_profile("suite")

if TYPE_CHECKING:
    from mlflow import MlflowClient

    from medexam.serve import EmbeddedEngine

# Torch's threads sleep while they wait for each other. They would spin, and where another process has one of the
# processors, a forward pass that waits for it in this way takes ten times as long. Read when torch is first imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# Runs of the tests lie in folders of their own, also in subprocesses.
os.environ.pop("MEDEXAM_RUNS", None)
if "PYTEST_XDIST_WORKER_COUNT" in os.environ:
    share = (os.cpu_count() or 1) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    os.environ.setdefault("OMP_NUM_THREADS", str(max(share, 1)))


def pytest_configure() -> None:
    """Hear Ctrl-C, which some tests send: a shell makes what it starts in the background ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark whole commands; begin with `LONG`, unless the order is drawn; search what imports left for no garbage."""
    for item in items:
        if not WHOLE.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("whole")
    if not config.pluginmanager.has_plugin("randomly"):
        items.sort(key=lambda item: not item.nodeid.startswith(LONG))
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture
def question() -> Question:
    """HEAD-QA v1, biology 2013, question 1, in English."""
    texts = [
        "Are all-or-none.",
        "Are hyperpolarizing.",
        "They can be added.",
        "They spread long distances.",
        "They present a refractory period.",
    ]
    return Question(
        key="headqa-v1/2013/biology/1",
        exam=Exam(name="Cuaderno_2013_1_B", year=2013, discipline=Discipline.BIOLOGY),
        number=1,
        language="en",
        stem="Excitatory postsynaptic potentials:",
        options=tuple(Option(number=n, text=text) for n, text in enumerate(texts, start=1)),
    )


@pytest.fixture
def failing(tmp_path: Path) -> Callable[..., None]:
    """`failing("nerve")`: scripts of the test fail at prompts with these words, and at no others; "" is in all."""

    def fail(*words: str) -> None:
        for path in tmp_path.glob("replies*.yaml"):
            table = yaml.safe_load(path.read_text(encoding="utf-8"))
            kept = {key: reply for key, reply in table.items() if reply != FAILURE}
            table = dict.fromkeys(words, FAILURE) | kept
            path.write_text(yaml.safe_dump(table, allow_unicode=True, sort_keys=False), encoding="utf-8")

    return fail


@pytest.fixture(scope="session")
def pip_and_setuptools() -> None:
    """What a test needs that builds a package without a network."""
    # By their metadata: looking for their modules warns where distutils was imported before.
    if not {"pip", "setuptools"} <= {found.name for found in distributions()}:
        pytest.skip("needs pip and setuptools")


@pytest.fixture
def runs_dir(tmp_path: Path) -> Path:
    """The folder of the test's runs."""
    path = tmp_path / "runs"
    path.mkdir(exist_ok=True)
    return path


@pytest.fixture
def uri(runs_dir: Path) -> str:
    """The MLflow store in the folder of the test's runs."""
    return f"sqlite:///{runs_dir.resolve()}/mlflow.db"


@pytest.fixture
def client(uri: str) -> "MlflowClient":
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=uri)


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a drawn model that answers at once; see `tiny_llama.py`."""
    from tiny_llama import save_tiny_llama

    return save_tiny_llama(tmp_path_factory.mktemp("tiny") / "tiny-llama")


@pytest.fixture(scope="session")
def tiny_engine(tiny_llama: Path) -> "Iterator[EmbeddedEngine]":
    """The engine of `tiny_llama` that the tests of a worker share."""
    yield from _open_engine(path=tiny_llama)


@pytest.fixture(scope="session")
def smollm2_engine() -> "Iterator[EmbeddedEngine]":
    """The one SmolLM2 that the tests of a worker share."""
    yield from _open_engine()


def _open_engine(**model: Path) -> "Iterator[EmbeddedEngine]":
    from medexam.serve import EmbeddedEngine
    from medexam.specs import ModelSpec

    engine = EmbeddedEngine(ModelSpec(dtype="float32", **model))
    yield engine
    asyncio.run(engine.aclose())


THINKING = """{% for m in messages %}<|im_start|>{{ m['role'] }}
{{ m['content'] }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and not enable_thinking %}<think>

</think>

{% else %}<think>
{% endif %}{% endif %}"""
"""A template that opens the block itself, as that of DeepSeek-R1 does, and has the switch of Qwen3's."""


@pytest.fixture(scope="session")
def thinking_model(tiny_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `tiny_llama` with a template that has it think."""
    folder = tmp_path_factory.mktemp("thinking") / "model"
    shutil.copytree(tiny_llama, folder, symlinks=True)
    (folder / "chat_template.jinja").unlink()
    (folder / "chat_template.jinja").write_text(THINKING, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def base_model(tiny_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `tiny_llama` without its chat template."""
    folder = tmp_path_factory.mktemp("base") / "model"
    shutil.copytree(tiny_llama, folder, symlinks=True)
    (folder / "chat_template.jinja").unlink()
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    config.pop("chat_template", None)
    (folder / "tokenizer_config.json").unlink()
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder
