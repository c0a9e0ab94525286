"""What is set: questions of the package's sample, as text that any of the fonts here can print."""

import json
from dataclasses import dataclass

from medexam.datasets import locate_files

_PLAIN = str.maketrans({"\u2192": "->", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\uf0b0": "\u00b0"})


@dataclass(frozen=True)
class Asked:
    """One question as it should be read."""

    number: int
    stem: str
    options: tuple[str, ...]

    @property
    def texts(self) -> list[str]:
        """Its stem and options."""
        return [self.stem, *self.options]


def sample_questions(count: int = 120, begin: int = 0, options: int = 9) -> list[Asked]:
    """Questions of the sample, numbered from 1, in the letters of Latin-1."""
    document = json.loads(locate_files("headqa_sample", "es")[0].read_text(encoding="utf-8"))
    entries = [entry for exam in document["exams"].values() for entry in exam["data"]]
    return [
        Asked(number, _plain(entry["qtext"]), tuple(_plain(answer["atext"]) for answer in entry["answers"][:options]))
        for number, entry in enumerate(entries[begin : begin + count], start=1)
    ]


def _plain(text: str) -> str:
    return " ".join(text.translate(_PLAIN).encode("latin-1", "ignore").decode("latin-1").split())
