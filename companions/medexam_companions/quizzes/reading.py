"""Which quiz tool wrote a file, by its ending and its text."""

from pathlib import Path

from medexam.datasets import RawTable, open_text
from medexam_companions.quizzes.texts import is_aiken, is_anki, is_gift, read_aiken, read_anki, read_gift
from medexam_companions.quizzes.xml import read_quiz_xml


def read_quiz(path: Path) -> RawTable | None:
    """Read the questions of a quiz tool's file; None if it is none. Raises `UnreadableError`, at a row too."""
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if suffix in (".xml", ".zip"):
        return RawTable("a quiz in XML", (), read_quiz_xml(path))
    if suffix not in (".txt", ".gift"):
        return None
    with open_text(path) as stream:
        text = stream.read()
    if is_anki(text):
        return read_anki(text)
    if is_aiken(text.splitlines()):
        return RawTable("Aiken", (), read_aiken(text.splitlines()))
    return RawTable("GIFT", (), read_gift(text)) if suffix == ".gift" or is_gift(text) else None
