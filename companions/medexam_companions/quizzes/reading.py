"""Which quiz tool wrote a file, by its ending and its text."""

from pathlib import Path

from medexam.datasets import RawTable, open_text
from medexam_companions.quizzes.texts import read_gift, read_text
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
    return read_text(text) or (RawTable("GIFT", (), read_gift(text)) if suffix == ".gift" else None)
