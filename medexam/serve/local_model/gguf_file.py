"""A GGUF file as an ordinary model folder, made once and kept in the cache.

transformers reads the file and unpacks its numbers. It leaves out what some files say of positions and of tokens that
end a reply, which is added here; a file of which it would leave out weights is refused. This module knows one file
format and folders; it runs no model.
"""

import io
import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from functools import cache
from pathlib import Path
from typing import Any

from filelock import FileLock

from medexam.errors import EngineError
from medexam.files import cache_dir, whole_folder, written_by_library
from medexam.fingerprints import hash_files
from medexam.library_logging import quiet_transformers
from medexam.serve.local_model.gguf_rope import ROPE_TENSOR, rope_parameters

_log = logging.getLogger(__name__)

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_MADE_AS = 1
"""Raise it when the same file would make another folder."""
_ENDS = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<turn|>", "<|end|>", "<|return|>")
"""Tokens that end a turn by their name, as llama.cpp takes them."""


def check_gguf(file: Path) -> Path:
    """Check that the file begins as a GGUF file does, and return it; raises `EngineError` otherwise."""
    try:
        with file.open("rb") as stream:
            magic, version = stream.read(4), int.from_bytes(stream.read(4), "little")
    except OSError as error:
        raise EngineError(f"{file}: it cannot be read: {error.strerror or error}") from error
    if magic != _MAGIC:
        raise EngineError(f"{file}: not a GGUF file; model.path names a GGUF file or a model folder")
    if version not in _VERSIONS:
        raise EngineError(f"{file}: GGUF version {version} is not supported; write it again with llama.cpp's tools")
    return file


def gguf_content(file: Path) -> str:
    """Hash the file's weights: its SHA-256, remembered; raises `EngineError` if it cannot be read."""
    try:
        return f"gguf:{hash_files([file], file)[0]}"
    except OSError as error:
        raise EngineError(f"{file}: it cannot be read: {error.strerror or error}") from error


def gguf_folder(file: Path, content: str) -> Path:
    """Return the folder made from a file of this content, found by size and SHA-256 or made now (a minute for 1.5
    billion parameters).

    Raises `EngineError` for a file that is damaged, not supported or has changed, and if the cache cannot be written.
    """
    folder = cache_dir() / "models" / f"gguf{_MADE_AS}-{file.stat().st_size}-{content.removeprefix('gguf:')}"
    if not (folder / "config.json").is_file():
        _log.warning("medexam: %s is made into a model folder once, in %s", file, folder.parent)
        make_folder(file, folder)
    if gguf_content(file) != content:
        raise EngineError(f"{file}: it changed while it was read; start again")
    return folder


def make_folder(file: Path, folder: Path) -> None:
    """Write the model as a folder, whole or not at all; a second process waits and finds it made."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.parent / f".{folder.name}.lock"):
            if not (folder / "config.json").is_file():
                with whole_folder(folder) as draft:
                    _convert(file, draft)
    except OSError as error:
        raise EngineError(
            f"{folder}: the model cannot be stored: {error}; name another cache with MEDEXAM_CACHE"
        ) from error


def _convert(file: Path, folder: Path) -> None:
    """Write the model with its tokenizer and chat template; any error of the libraries becomes one line."""
    try:
        # The progress bar of the GGUF reader ignores transformers' settings, hence the redirection.
        with quiet_transformers(), redirect_stderr(io.StringIO()), _one_reading(file) as reader:
            _unpack(file, reader, folder)
    except (EngineError, OSError):
        raise
    except Exception as error:
        message = " ".join(str(error).split())[:300] or type(error).__name__
        raise EngineError(f"{file}: transformers cannot read this GGUF file: {message}") from error


@contextmanager
def _one_reading(file: Path) -> Iterator[Any]:
    """Yield the file's reader, which transformers takes meanwhile as well.

    It would read the file three times more, and list the names of an architecture's tensors for each of its modules:
    half of the time that a conversion takes.
    """
    import gguf

    # Its types are not all annotated.
    library: Any = gguf
    read, list_names = library.GGUFReader, library.get_tensor_name_map
    reader = read(file)
    library.GGUFReader = lambda path, *mode: reader if Path(path) == file else read(path, *mode)
    library.get_tensor_name_map = cache(list_names)
    try:
        yield reader
    finally:
        library.GGUFReader, library.get_tensor_name_map = read, list_names


def _unpack(file: Path, reader: Any, folder: Path) -> None:
    import torch
    import transformers

    tensors, fields = list(reader.tensors), dict(reader.fields)
    _check_whole(file, fields)
    source: dict[str, Any] = {"gguf_file": file.name, "trust_remote_code": False}
    # Newer versions leave the weights of some architectures as GGUF's blocks, which cannot be saved.
    config_class = getattr(transformers, "GgufConfig", None)
    options = {"quantization_config": config_class(dequantize=True)} if config_class else {}
    dtype = getattr(torch, _stored_type(tensors))
    outcome: Any = transformers.AutoModelForCausalLM.from_pretrained(
        file.parent, dtype=dtype, output_loading_info=True, **source, **options
    )
    model, missing = outcome[0], outcome[1]["missing_keys"]
    # Left in place, these make transformers refuse to save a model that it takes for quantised.
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.hf_quantizer = None
    _check_weights(file, tensors, model, missing)
    rope_parameters(file, fields, tensors, model.config)
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(file.parent, **source)
    model.generation_config.eos_token_id = _ends(fields, tokenizer)
    with written_by_library():
        model.to(dtype).save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def _check_whole(file: Path, fields: dict[str, Any]) -> None:
    parts = fields["split.count"].contents() if "split.count" in fields else 1
    if parts > 1:
        raise EngineError(
            f"{file}: it is one of {parts} parts; make one file of them with llama-gguf-split --merge, and name that"
        )


def _stored_type(tensors: Sequence[Any]) -> str:
    """Return the type of the folder's weights: that of the file's matrices, and bfloat16 for quantised ones."""
    types = {tensor.tensor_type.name for tensor in tensors if len(tensor.shape) > 1}
    if types == {"F32"}:
        return "float32"
    return "float16" if types <= {"F32", "F16"} else "bfloat16"


def _check_weights(file: Path, tensors: Sequence[Any], model: Any, missing: Collection[str]) -> None:
    """Raise `EngineError` unless the model has the file's numbers and no others, all of them finite.

    transformers leaves out a tensor that it does not know, and draws one at random that it does not find.
    """
    import torch

    file_count = sum(int(tensor.n_elements) for tensor in tensors if tensor.name != ROPE_TENSOR)
    model_count = sum(parameter.numel() for parameter in model.parameters())
    if missing:
        raise EngineError(
            f"{file}: transformers does not find {', '.join(sorted(missing)[:3])} in it; name another file"
        )
    if file_count != model_count:
        raise EngineError(
            f"{file}: the file holds {file_count:,} weights and transformers makes a model of {model_count:,} of it; "
            "serve it with llama.cpp, and ask the server by engine litellm or vllm"
        )
    if not all(torch.stack(parameter.aminmax()).isfinite().all() for parameter in model.parameters()):
        raise EngineError(f"{file}: it is damaged: some weights are not finite numbers; copy it again")


def _ends(fields: dict[str, Any], tokenizer: Any) -> list[int]:
    """Collect the tokens that end a reply: those that the file says, and those that end a turn by their name."""
    keys = (f"tokenizer.ggml.{name}_token_id" for name in ("eos", "eot", "eom"))
    ids = {int(fields[key].contents()) for key in keys if key in fields}
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    return sorted(ids | {vocabulary[name] for name in _ENDS if name in vocabulary})
