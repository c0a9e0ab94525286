"""A submission to ClinIQLink: a folder with one file a format, as the shared task's `submit.py` writes them.

Each file is `{"inputs": [the questions], "responses": [the model's outputs]}`, in the same order. Rules of the released
scorer hold: if a file has not as many responses as inputs, nobody knows whose they are, and its format scores 0; so
does a format without a file. What the inputs give as the right answer is compared with our data, and never scored by.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from medexam.files import UnreadableError, read_json
from medexam_companions.harnesses.imports.samples import HarnessSample, Results, ResultsError, text_or_none

_FORMATS = ("true_false", "multiple_choice", "list", "short", "short_inverse", "multi_hop", "multi_hop_inverse")
_OTHER_NAMES = {"true_false": "TF.json", "multiple_choice": "MC.json"}
"""Format -> the name of the file of its questions, if it is not the format's, which the released scorer reads."""
_EXPECTED = ("correct_answer", "answer", "incorrect_explanation", "incorrect_reasoning_step")
"""Fields of an input that hold what is expected."""


def is_submission(path: Path) -> bool:
    """Return whether `path` is a folder with an output of a format."""
    return path.is_dir() and any(output_paths(path, group) for group in _FORMATS)


def output_paths(folder: Path, group: str) -> list[Path]:
    """List the files with outputs of a format: by the name that the scorer reads, or that of the questions."""
    names = dict.fromkeys((f"{group}.json", _OTHER_NAMES.get(group, f"{group}.json")))
    return [folder / name for name in names if (folder / name).is_file()]


def read_submission(folder: Path) -> Results:
    """Read the outputs of all formats; raises `ResultsError` if a format has two files, or one leads elsewhere."""
    samples: list[HarnessSample] = []
    files: list[Path] = []
    notes: list[str] = []
    for group in _FORMATS:
        paths = output_paths(folder, group)
        if len(paths) > 1:
            raise ResultsError(f"{folder}: {paths[0].name} and {paths[1].name} are of one format: leave one out")
        if not paths:
            notes.append(f"{group}.json is missing: the format scores 0 in the published profile")
            continue
        if paths[0].is_symlink():
            raise ResultsError(f"{paths[0]}: is a symbolic link: put the file itself there")
        files += paths
        samples += _read_format(paths[0], group, notes)
    if not samples:
        raise ResultsError(f"{folder}: holds no question: {'; '.join(notes)}")
    name = folder.resolve().name
    return Results("cliniqlink", name, "responses", samples, "ClinIQLink", notes=tuple(notes), companions=tuple(files))


def _read_format(path: Path, group: str, notes: list[str]) -> Iterator[HarnessSample]:
    """Yield a sample for each input; without a response if the file does not say whose its responses are."""
    try:
        document = read_json(path)
    except (OSError, UnreadableError) as error:
        notes.append(f"{path.name} cannot be read ({error}): the format scores 0 in the published profile")
        return
    inputs = document.get("inputs") if isinstance(document, Mapping) else None
    responses = document.get("responses") if isinstance(document, Mapping) else None
    if not isinstance(inputs, list) or not isinstance(responses, list):
        notes.append(f"{path.name} lacks the lists inputs and responses: the format scores 0 in the published profile")
        return
    if len(inputs) != len(responses):
        notes.append(
            f"{path.name} has {len(inputs):,} inputs and {len(responses):,} responses, so its responses are not "
            "counted and the format scores 0: write one response for each input, an empty text for a missing one"
        )
        responses = [None] * len(inputs)
    for place, (item, response) in enumerate(zip(inputs, responses, strict=True), start=1):
        if not isinstance(item, Mapping) or not isinstance(item.get("question"), str):
            raise ResultsError(
                f"{path}, input {place}: is not an object with a question: copy it from the original file"
            )
        yield _sample(item, group, response)


def _sample(item: Mapping[str, Any], group: str, response: object) -> HarnessSample:
    shown_answer = item.get("false_answer") if group == "short_inverse" else item.get("answer")
    expected = [text for name in _EXPECTED if (text := _joined(item.get(name)))]
    options = item.get("options")
    return HarnessSample(
        ids=(f"cliniqlink/{group}/{item['id']}",) if "id" in item else (),
        stem=item["question"],
        options=tuple(map(str, options)) if isinstance(options, list) else (),
        group=group,
        given_answer=text_or_none(shown_answer) if group.endswith("inverse") else None,
        # The answer that a question itself shows says nothing of what is expected.
        target=None if expected == [shown_answer] and group.endswith("inverse") else "\n".join(expected) or None,
        reply=_text_of(response),
    )


def _text_of(response: object) -> str | None:
    """Return the text of a response, as pipelines wrap it in lists and objects; None if there is none."""
    if response is None or isinstance(response, str):
        return response
    if isinstance(response, Mapping):
        return str(response.get("generated_text") or response.get("text") or "")
    if isinstance(response, Sequence):
        return " ".join(text for part in response if (text := _text_of(part)))
    return str(response)


def _joined(value: object) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value or "")
