"""GGUF files as models: against what llama.cpp says of them, and what is refused."""

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import llama_cpp_logits as llama_cpp
from medexam.errors import EngineError
from medexam.serve import LocalModel, find_weights, gguf_folder
from medexam.specs import ModelSpec

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


def agree(recorded: dict, model: LocalModel, rows: list[list[int]]) -> None:
    """With the weights in 32 bits to the rounding of bfloat16, else to what llama.cpp rounds itself.

    Measured: 3e-5 and 2e-3 for SmolLM2, 4e-6 and 6e-5 for the drawn model.
    """
    found = [model.next_logits([row]).log_softmax(-1).double().numpy()[0] for row in rows]
    exact = llama_cpp.distance(recorded["in_32_bits"], found)
    assert exact["kl"] < 2e-4, exact
    assert exact["nats"] < 0.02, exact
    as_it_is = llama_cpp.distance(recorded["as_it_is"], found)
    assert as_it_is["kl"] < 5e-3, as_it_is
    assert as_it_is["same"] > 0.95, as_it_is


def test_k_quantisations_and_llama_3_s_positions_read_as_llama_cpp_does(drawn) -> None:
    """Two layers of drawn weights in Q2_K to Q6_K; the last of the texts has 1,500 tokens."""
    model, recorded = load(drawn), RECORD["drawn"]
    rows = model.encode(llama_cpp.plain_texts())
    assert [llama_cpp.token_hash(row) for row in rows] == [row["tokens"] for row in recorded["in_32_bits"]]
    agree(recorded, model, rows)
    assert model.ends == {256, 257}, "the tokens that end a turn"


def test_the_file_is_converted_once_and_its_hash_is_its_identity(drawn, tmp_path, caplog) -> None:
    found = find_weights(ModelSpec(path=drawn))
    assert (found.label, found.content) == ("drawn", f"gguf:{RECORD['drawn']['sha256']}")
    with ThreadPoolExecutor(2) as pool:
        (folder,) = set(pool.map(lambda _: gguf_folder(drawn, found.content), range(2)))
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


def rewriting(before: bytes, after: bytes) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        data = path.read_bytes()
        assert before in data
        path.write_bytes(data.replace(before, after, 1))

    return spoil


def cutting(end: int) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(path.read_bytes()[:end]) and None


def changing(tensor_name: str, value: float) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        import gguf

        (tensor,) = [one for one in gguf.GGUFReader(path, "r+").tensors if one.name == tensor_name]
        if tensor.data.dtype == np.float32:
            tensor.data[3] = value
        else:
            tensor.data[5, :2] = np.frombuffer(np.float16(value).tobytes(), np.uint8)
        tensor.data.flush()

    return spoil


def write_one_of_two(path: Path) -> None:
    import gguf

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint16("split.count", 2)
    writer.add_tensor("token_embd.weight", np.zeros((4, 4), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (rewriting(b"GGUF", b"PKZP"), "not a GGUF file"),
        (rewriting(b"GGUF\x03", b"GGUF\x01"), "GGUF version 1 is not supported"),
        (cutting(-2000), "cannot read this GGUF file"),
        (cutting(300), "cannot read this GGUF file"),
        (
            rewriting(b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0clipp"),
            "architecture clipp is not supported",
        ),
        (
            rewriting(b"blk.1.ffn_norm.weight", b"blk.1.ffn_xorm.weight"),
            "does not find model.layers.1.post_attention_layernorm.weight",
        ),
        (changing("rope_freqs.weight", 2.5), "is not Llama 3's; serve it with llama.cpp"),
        (changing("blk.0.attn_q.weight", float("nan")), "some weights are not finite numbers"),
        (write_one_of_two, "one of 2 parts; .*--merge"),
        (Path.unlink, "no such model folder or GGUF file"),
    ],
)
def test_what_cannot_be_read_is_one_line_and_leaves_nothing(drawn, tmp_path, monkeypatch, spoil, said) -> None:
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))
    path = Path(shutil.copy(drawn, tmp_path / "spoilt.gguf"))
    spoil(path)
    with pytest.raises(EngineError, match=said) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not [found for found in (tmp_path / "cache").rglob("*") if found.is_dir() and found.name != "models"]
