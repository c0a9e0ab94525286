"""What a model is before it answers: its name at a server, the content of its folder, its commit, its type."""

import json
import shutil
from pathlib import Path

import pytest
import yaml
from wire_server import Wire, serving

from medexam.errors import EndpointUnreachableError, EngineError
from medexam.serve import known_model
from medexam.serve.local_model import dtype_speed, dtypes
from medexam.serve.naming import with_served_name
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


def known(path: Path, **fields: object) -> dict:
    return known_model(ModelSpec(path=path, dtype="float32", **fields))


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


@pytest.mark.parametrize(
    ("able", "gain", "dtype"),
    [(True, 3.0, "bfloat16"), (True, 0.9, "bfloat16"), (True, 0.5, "float32"), (False, 3.0, "float32")],
)
def test_auto_is_the_type_that_it_stands_for(folder: Path, monkeypatch, able: bool, gain: float, dtype: str) -> None:
    monkeypatch.setattr(dtypes, "_multiplies_bfloat16", lambda: able)
    monkeypatch.setattr(dtypes, "bfloat16_gain", lambda _: gain)
    auto = known_model(ModelSpec(path=folder, device="cpu"))
    assert auto == known_model(ModelSpec(path=folder, device="cpu", dtype=dtype))
    assert auto["dtype"] == dtype


def test_this_processor_is_known_without_torch_as_torch_knows_it() -> None:
    import torch

    able = torch.cpu.get_capabilities()
    native = any(able.get(name) for name in ("amx_bf16", "avx512_bf16", "bf16"))
    assert dtypes._multiplies_bfloat16() == native
    assert dtypes.pick_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")


def test_types_are_measured_once_for_each_width(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path))
    measured = []

    def measure(width: int) -> float:
        measured.append(width)
        return real(width)

    real = dtype_speed._measure
    monkeypatch.setattr(dtype_speed, "_measure", measure)
    gains = []
    for width in (64, 128, 64):
        dtype_speed.bfloat16_gain.cache_clear()  # As in another process.
        gains.append(dtype_speed.bfloat16_gain(width))
    assert measured == [64, 128]
    assert gains[0] == gains[2] > 0
    (tmp_path / dtype_speed.MEMORY).write_text("[torn")
    dtype_speed.bfloat16_gain.cache_clear()
    assert dtype_speed.bfloat16_gain(64) > 0
    assert list(json.loads((tmp_path / dtype_speed.MEMORY).read_text())) == [f"{dtype_speed._machine()}, width 64"]
    dtype_speed.bfloat16_gain.cache_clear()


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
    with pytest.raises(EngineError, match="the commit of"):
        known_model(ModelSpec(name="org/other", dtype="float32"))


def test_a_script_is_what_it_says(tmp_path: Path) -> None:
    def script(name: str, replies: dict[str, str]) -> dict:
        (tmp_path / name).write_text(yaml.safe_dump(replies, sort_keys=False))
        return known_model(ModelSpec(engine="scripted", path=tmp_path / name))

    first = script("a.yaml", {"a": "1", "*": "2"})
    assert script("b.yaml", {"a": "1", "*": "2"}) == first
    # The first key that fits gives the reply.
    assert first not in (script("a.yaml", {"a": "1", "*": "3"}), script("a.yaml", {"*": "2", "a": "1"}))


def test_the_served_name_is_taken_from_the_first_server_that_answers() -> None:
    with serving(Wire(models=("org/tiny",))) as wire:
        spec = ModelSpec(engine="vllm", endpoints=("http://127.0.0.1:9/v1", wire.address))
        assert with_served_name(spec).name == "org/tiny"
        assert [path for path, _ in wire.requests] == ["/v1/models"]


def test_a_name_that_is_there_asks_nobody() -> None:
    spec = ModelSpec(engine="vllm", name="tiny", endpoints=("http://127.0.0.1:9/v1",))
    assert with_served_name(spec) is spec


def test_a_server_of_two_models_must_be_told_which() -> None:
    with (
        serving(Wire(models=("a", "b"))) as wire,
        pytest.raises(EndpointUnreachableError, match=r"name one in model\."),
    ):
        with_served_name(ModelSpec(engine="vllm", endpoints=(wire.address,)))
