"""A benchmark that ships is named in the rooms that are its own; everything else asks the registries."""

import re
from pathlib import Path

import pytest

import medexam

ROOT = Path(medexam.__file__).parent
NAMED = re.compile(r"head-?_?qa|casimedicos|cliniqlink", re.IGNORECASE)
REGISTRIES = ("specs/catalogue.py", "datasets/readers.py", "benchmarks/registry.py")
READERS = ("datasets/headqa_v1.py", "datasets/headqa_v2.py", "companions/casimedicos/")
SCORERS = ("metrics/exam_averages.py",)
PAPERS = ("companions/papers/", "experiments/report/papers/", "experiments/published/", "experiments/library/")
WORDS = (
    "signatures/words/",
    "companions/translation/words/",
    "companions/finetuning/grids/",
    "companions/finetuning/variants_command.py",
)
DATA = ("datasets/sample/", "datasets/study/", "specs/spec.schema.json")
EXAMPLES = ("cli/help/examples.py",)
HARNESS = (
    "companions/cliniqlink/",
    "companions/harnesses/imports/reading.py",
    "companions/harnesses/imports/words/submission.py",
    "companions/shipped.py",
    "specs/programs/controls.py",
)
"""ClinIQLink is a harness too, whose submissions are read, scored and run."""
ROOMS = (*REGISTRIES, *READERS, *SCORERS, *PAPERS, *WORDS, *DATA, *EXAMPLES, *HARNESS)
ENDINGS = (".py", ".md", ".yaml", ".json", ".html", ".js", ".css", ".txt")
FILES = sorted(
    path
    for path in ROOT.rglob("*")
    if path.suffix in ENDINGS and not path.relative_to(ROOT).as_posix().startswith(ROOMS)
)


@pytest.mark.parametrize("room", ROOMS)
def test_each_room_is_there(room: str) -> None:
    assert (ROOT / room).exists()


def test_no_other_file_names_a_benchmark() -> None:
    named = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in FILES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if NAMED.search(line)
    ]
    assert not named, "\n".join(named)
