"""Inspect's logs: `.eval`, a zip of JSON files, and `.json`, one document of the same; read without Inspect itself.

`header.json` says what was run, `samples/ID_epoch_N.json` holds a sample each. Newer versions pack them by Zstandard,
which Python's `zipfile` does not know: those members are cut out and unpacked here. Each scorer and epoch is one run.
"""

import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from medexam.inputs import UnreadableError, check_archive, first_line, parse_json
from medexam_companions.harnesses.imports.document import last_question
from medexam_companions.harnesses.imports.samples import (
    MISSHAPEN,
    HarnessSample,
    Results,
    ResultsError,
    read_count,
    read_seconds,
    text_or_none,
)
from medexam_companions.harnesses.imports.told import of_inspect

Record = Mapping[str, Any]
_ZSTANDARD = 93
"""The zip format's number of this compression."""
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_VERDICTS: Mapping[Any, bool] = {"C": True, "I": False, "N": False, 1: True, 0: False}
"""A score's value -> whether it is right: correct, incorrect, no answer."""


def is_inspect(document: object) -> bool:
    """Return whether a JSON document is a log of Inspect."""
    return isinstance(document, Mapping) and {"eval", "status", "version"} <= document.keys()


def read_inspect(path: Path, document: Any = None) -> list[Results]:
    """Read the samples of each scorer and epoch; `document` is what a JSON log holds, None for a zip.

    Raises `ResultsError` if the log is damaged or holds none.
    """
    try:
        header, samples = _read_archive(path) if document is None else (document, document.get("samples") or ())
        results = _sort(path, header, samples)
    except (OSError, UnreadableError, zipfile.BadZipFile, struct.error, *MISSHAPEN) as error:
        raise ResultsError(f"{path}: is not a complete Inspect log ({first_line(error)})") from None
    if not results:
        raise ResultsError(
            f"{path}: no scorer says right or wrong of its samples, so there is no answer to import; were samples "
            "logged (--log-samples) and scored?"
        )
    return results


def _read_archive(path: Path) -> tuple[Record, Iterator[Record]]:
    check_archive(path)
    with zipfile.ZipFile(path) as archive:
        members = {member.filename: member for member in archive.infolist()}
    # A log that was cut off has no header yet, and its journal says how it began.
    first = members.get("header.json") or members["_journal/start.json"]
    samples = [member for name, member in members.items() if name.startswith("samples/")]
    return next(_unpack(path, [first])), _unpack(path, samples)


def _unpack(path: Path, members: Iterable[zipfile.ZipInfo]) -> Iterator[Any]:
    # By hand, for Zstandard, and because `zipfile` takes as long to open a member as to unpack it.
    with path.open("rb") as stream:
        for member in members:
            stream.seek(member.header_offset)
            header = _LOCAL_HEADER.unpack(stream.read(_LOCAL_HEADER.size))
            stream.seek(header[-2] + header[-1], 1)  # the name and the extra field
            content = _unpack_member(stream.read(member.compress_size), member)
            if len(content) != member.file_size or zlib.crc32(content) != member.CRC:
                raise UnreadableError(f"{member.filename} does not fit the checksum in the zip file")
            yield parse_json(content)


def _unpack_member(packed: bytes, member: zipfile.ZipInfo) -> bytes:
    """Unpack the bytes of a member, one more than it says it has at most."""
    limit = member.file_size + 1
    try:
        if member.compress_type == zipfile.ZIP_STORED:
            return packed
        if member.compress_type == zipfile.ZIP_DEFLATED:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, limit)
        if member.compress_type == _ZSTANDARD:
            return _unpack_zstandard(packed, limit)
    except (OSError, zlib.error) as error:
        raise UnreadableError(first_line(error)) from None
    raise UnreadableError(f"{member.filename} is compressed by an unknown method ({member.compress_type})")


def _unpack_zstandard(packed: bytes, limit: int) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as unpacked:
        content: bytes = unpacked.read(limit)
    return content


def _sort(path: Path, header: Record, samples: Iterable[Record]) -> list[Results]:
    """Sort results by scorer and epoch; a sample that failed stands in each of its epoch."""
    evaluation = header["eval"]
    names = [str(scorer["name"]) for scorer in evaluation.get("scorers") or ()]
    values: dict[tuple[str, int], list[HarnessSample]] = {}
    unclear: set[str] = set()
    failed: dict[int, list[HarnessSample]] = {}
    for record in samples:
        epoch, scores = read_count(record.get("epoch") or 1), record.get("scores") or {}
        if epoch is None or not scores:
            failed.setdefault(epoch or 1, []).append(_sample(record, {}))
            continue
        for name, score in scores.items():
            if _verdict(score) is None:
                unclear.add(name)
            values.setdefault((name, epoch), []).append(_sample(record, score))
        names += [name for name in scores if name not in names]
    epochs = sorted({epoch for _, epoch in values})
    stated = _stated(header)
    return [
        Results(
            harness="inspect",
            task=str(evaluation.get("task") or path.name.partition(".")[0]).rpartition("/")[2],
            measure=name if len(epochs) == 1 else f"{name}-epoch-{epoch}",
            samples=[*values[name, epoch], *failed.get(epoch, ())],
            version=text_or_none((evaluation.get("packages") or {}).get("inspect_ai")),
            model=text_or_none(evaluation.get("model")),
            stated=stated.get(name) if len(epochs) == 1 else None,
            protocol=of_inspect(header, name),
        )
        for name in names
        for epoch in epochs
        if (name, epoch) in values and name not in unclear
    ]


def _stated(header: Record) -> dict[str, float]:
    """Read the accuracy that the log states for each scorer."""
    scores = (header.get("results") or {}).get("scores") or ()
    stated = {str(score.get("name")): (score.get("metrics") or {}).get("accuracy", {}).get("value") for score in scores}
    return {name: float(value) for name, value in stated.items() if isinstance(value, (int, float))}


def _verdict(score: Record) -> bool | None:
    value = score.get("value")
    return _VERDICTS.get(value) if isinstance(value, (str, bool, int, float)) else None


def _sample(record: Record, score: Record) -> HarnessSample:
    output = record.get("output") or {}
    usage = output.get("usage") or {}
    return HarnessSample(
        ids=(str(record["id"]),),
        stem=last_question(record.get("input")),
        options=tuple(map(str, record.get("choices") or ())),
        choice=_letter(score.get("answer")),
        target=_letter(record.get("target")),
        right=_verdict(score) if score else None,
        reply=text_or_none(output.get("completion")) or None,
        prompt_tokens=read_count(usage.get("input_tokens")),
        completion_tokens=read_count(usage.get("output_tokens")),
        latency_s=read_seconds(output.get("time")),
        failed=not score,
    )


def _letter(value: Any) -> str | None:
    """Return one answer as it is written; None for none and for several."""
    if isinstance(value, list):
        value = value[0] if len(value) == 1 else None
    return value if isinstance(value, str) and value else None
