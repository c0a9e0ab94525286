"""Where the pages are read: what every reader finds, set up once, and a folder for each of them."""

import gc
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from batch_server import BatchProvider, serving_batches
from fake_vllm import free_port
from wire_server import Wire

from documented.printed import PAGES, Command, commands_of, specs_of
from documented.reader import Ended, Reader
from documented.servers import start_servers
from documented.shelf import Shelf, fill_shelf
from documented.tables import BEFORE, EVERY, TRACKED, WORDS
from medexam.plugins import added_names
from medexam.serve import TIMING, gguf_content, gguf_folder, smollm2_folder
from suite.isolation import DTYPE_SPEED, share

KEPT = """
name: kept
dataset: {{name: headqa_sample, limit: 24}}
model: {{engine: vllm, endpoints: ["{LLAMA}"]}}
matrix:
  program: [longest, random, zero_shot, {{kind: zero_shot, answer_format: guided}}, {{kind: likelihood, norm: min_k}}]
  dataset.language: [en, es]
"""
"""The experiment whose runs stand for the runs that pages speak of and make by no command."""
_UNSET = ("MEDEXAM_RUNS", "VLLM_API_KEY", "CUDA_VISIBLE_DEVICES", "HF_TOKEN", "OPENAI_API_KEY", "ANTHROPIC_API_KEY")


@dataclass(frozen=True)
class Desk:
    """What every reader finds."""

    folder: Path
    shelf: Shelf
    addresses: dict[str, str]
    """Those of the servers in this process, by name."""
    outcomes: dict[Path, Ended] = field(default_factory=dict)
    """What the readers know of commands that run once."""

    def open(self, page: str, folder: Path) -> Reader:
        """A reader of the page, in a folder that is made."""
        shutil.copytree(self.shelf.files, folder, symlinks=True)
        shutil.copytree(self.folder / "kept", folder / "kept")
        (folder / "runs").mkdir()
        shutil.copy(self.folder / "mlflow.db", folder / "runs")
        (folder / "cache").symlink_to(self.folder / "cache")
        for file, text in specs_of(PAGES[page], _specs_to_write(page)).items():
            (folder / file).write_text(text, encoding="utf-8")
        shutil.copy(self.folder / "kept.yaml", folder)
        known = self.addresses | {"PORT": str(free_port())}
        words = {name: typed.format(**known) for name, typed in (WORDS[EVERY] | WORDS.get(page, {})).items()}
        cpu_site = str(self.shelf.cpu_site)
        reader = Reader(folder, words, self.addresses, cpu_site, tracks=page in TRACKED, outcomes=self.outcomes)
        for line in BEFORE.get(page, ()):
            ended = reader.type(Command.read(line.format(**known)))
            assert ended.code == 0, f"{line}: {ended.err}"
        return reader


def _specs_to_write(page: str) -> set[str]:
    """The specs that the commands of a page name, without those that one of them writes."""
    commands = commands_of(PAGES[page])
    named = {word for command in commands for word in command.words if word.endswith(".yaml")}
    written = {Path(command.words[2]).stem for command in commands if command.words[:2] == ("data", "init")}
    return named - {f"{stem}.yaml" for stem in written}


@contextmanager
def set_up(folder: Path, model: Path, store: Path) -> Iterator[Desk]:
    """Prepare everything in `folder`; the environment is that of a machine without a network while this lasts.

    The folder `model` stands for SmolLM2's, and `store` is an empty one of MLflow.
    """
    # What earlier tests left says on standard error that it was not closed: now, and not while a command is read.
    gc.collect()
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        shelf = fill_shelf(folder / "shelf")
        _fill_cache(folder / "cache", model, shelf.gguf)
        shutil.copy(store, folder)
        for name in _UNSET:
            patch.delenv(name, raising=False)
        patch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        patch.setattr("datasets.config.HF_HUB_OFFLINE", True)
        patch.setattr(TIMING, "first_batch_poll_s", 0.01)
        patch.setattr("medexam.experiments.track.ui.serve_ui", lambda *_, **__: 0)
        patch.syspath_prepend(shelf.plugin)
        # What packages add is looked up once in a process: before the plug-in was there, and with it.
        added_names.cache_clear()
        stack.callback(added_names.cache_clear)
        addresses = start_servers(stack)
        provider = stack.enter_context(serving_batches(BatchProvider(Wire(models=("gpt-4o-mini",)))))
        environment = {
            "MEDEXAM_DATA": str(shelf.data),
            "MEDEXAM_CACHE": str(folder / "cache"),
            "MEDEXAM_VLLM_PYTHON": sys.executable,
            "PYTHONPATH": str(shelf.site),
            "PATH": f"{shelf.tools}{os.pathsep}{os.environ['PATH']}",
            "HF_HUB_OFFLINE": "1",
            "OPENAI_API_KEY": "sk-test",
            "OPENAI_BASE_URL": provider.address,
            "OPENAI_API_BASE": provider.address,
        }
        for name, value in environment.items():
            patch.setenv(name, value)
        _keep_runs(folder, addresses)
        yield Desk(folder, shelf, addresses)


def _fill_cache(cache: Path, model: Path, gguf: Path) -> None:
    """Have `model` found as SmolLM2, beside `gguf` as it is converted for all tests, and the speed of this machine."""
    models = cache / "models"
    models.mkdir(parents=True)
    (models / smollm2_folder().name).symlink_to(model)
    converted = gguf_folder(gguf, gguf_content(gguf))
    (models / converted.name).symlink_to(converted)
    share(DTYPE_SPEED, cache / DTYPE_SPEED.name)


def _keep_runs(folder: Path, addresses: dict[str, str]) -> None:
    """Make the runs of `KEPT`."""
    (folder / "kept").mkdir()
    shutil.copy(folder / "mlflow.db", folder / "kept")
    (folder / "kept.yaml").write_text(KEPT.format(**addresses), encoding="utf-8")
    ended = Reader(folder, {}, {}, "", tracks=False).type(Command.read("medexam run kept.yaml --runs-dir kept"))
    assert ended.code == 0, ended.err
