"""Reads what quiz tools export as XML: Moodle's own form, and items of QTI 2 and 3, also many in a zip file.

A document type is refused: that is where entities are declared, which may name other files or grow without end.
"""

import zipfile
import zlib
from collections.abc import Iterator
from html import escape
from pathlib import Path
from xml.etree import ElementTree as ET

from medexam.datasets import Cells
from medexam.files import UnreadableError, first_line, read_bytes
from medexam_companions.quizzes.texts import make_row, read_number


class _Builder(ET.TreeBuilder):
    def doctype(self, name: str, *_: str | None) -> None:
        raise UnreadableError(f"declares the document type {name!r:.40}: remove the line <!DOCTYPE ...>")

    def start(self, tag: str, attrs: dict[str, str]) -> ET.Element:
        # QTI 3 writes qti-simple-choice and map-key for simpleChoice and mapKey; each version has its own namespace.
        names = {_plain(name): value for name, value in attrs.items()}
        return super().start(_plain(tag), names)

    def end(self, tag: str) -> ET.Element:
        return super().end(_plain(tag))


def _plain(name: str) -> str:
    return name.rpartition("}")[2].lower().removeprefix("qti-").replace("-", "")


def read_quiz_xml(path: Path) -> Iterator[tuple[str, Cells]]:
    """Read the questions of an XML file, or of all such files in a zip file.

    Raises `OSError`, and `UnreadableError` if it is damaged or holds questions in no known form.
    """
    roots = [(name, _parse(content)) for name, content in _contents(path)]
    quizzes = [(name, root) for name, root in roots if root.tag in ("quiz", "assessmentitem")]
    if not quizzes:
        tags = ", ".join(sorted({f"<{root.tag}>" for _, root in roots})) or "nothing"
        raise UnreadableError(f"holds XML of {tags}: it is read from Moodle (<quiz>) and QTI 2 or 3 (<assessmentItem>)")
    for name, root in quizzes:
        rows = _read_moodle(root) if root.tag == "quiz" else iter([_read_item(root)])
        yield from ((f"{name}, question {number}", row) for number, row in enumerate(rows, start=1))


def _contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield each XML file with its name."""
    if not zipfile.is_zipfile(path):
        yield path.name, read_bytes(path)
        return
    try:
        with zipfile.ZipFile(path) as archive:
            for name in filter(lambda name: name.lower().endswith(".xml"), archive.namelist()):
                yield name, archive.read(name)
    except (EOFError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
        raise UnreadableError(f"is not a complete archive: {first_line(error)}") from None


def _parse(content: bytes) -> ET.Element:
    try:
        return ET.fromstring(content, ET.XMLParser(target=_Builder()))  # noqa: S314 - refuses document types
    except UnreadableError:
        raise
    except (ET.ParseError, ValueError, LookupError) as error:
        raise UnreadableError(f"is not XML ({first_line(error)}): export it again") from None


def _read_moodle(root: ET.Element) -> Iterator[Cells]:
    category = ""
    for question in root.iter("question"):
        kind, stem = question.get("type"), question.findtext("questiontext/text", "").strip()
        answers = [
            (answer.findtext("text", ""), read_number(answer.get("fraction"))) for answer in question.iter("answer")
        ]
        if kind == "category":
            category = question.findtext("category/text", "").removeprefix("$course$/").removeprefix("top/")
        elif kind in ("multichoice", "truefalse"):
            title, explanation = question.findtext("name/text"), question.findtext("generalfeedback/text")
            yield make_row(stem, answers, title=title, category=category, explanation=explanation)
        elif kind == "shortanswer":
            yield {"question": stem, "answer": [text for text, points in answers if points >= 100]}
        else:
            yield f"is a question of type {kind!r:.30}, which has no options: {stem!r:.60}"


def _read_item(root: ET.Element) -> Cells:
    """Read an item of QTI, whose only interaction is a choice."""
    body = root.find("itembody")
    interactions = [element for element in root.iter() if element.tag.endswith("interaction")]
    if body is None or [element.tag for element in interactions] != ["choiceinteraction"]:
        return f"has {len(interactions)} interactions; only items with exactly one, a choice, are read"
    if root.find(".//assessmentstimulusref") is not None:
        return "belongs to a text in another file, which is not read"
    for hidden in [element for element in body.iter() if element.tag.startswith(("feedback", "rubric"))]:
        # What is shown after the answer says which is right.
        _empty(hidden)
    (choice,) = interactions
    name = choice.get("responseidentifier")
    (declared, *_) = [
        declaration for declaration in root.iter("responsedeclaration") if declaration.get("identifier") == name
    ] or [root]
    points = {entry.get("mapkey"): 100 * read_number(entry.get("mappedvalue")) for entry in declared.iter("mapentry")}
    right = {(element.text or "").strip(): 100.0 for element in declared.iterfind("correctresponse/value")}
    options = []
    for option in list(choice.iter("simplechoice")):
        options.append((_inner(option), (right or points).get(option.get("identifier", ""), 0.0)))
        _empty(option)
    return make_row(_inner(body), options, id=root.get("identifier"), title=root.get("title"))


def _empty(element: ET.Element) -> None:
    tail = element.tail
    element.clear()
    element.tail = tail


def _inner(element: ET.Element) -> str:
    """Return what stands in an element, as HTML: what is no element of HTML is one that groups others."""
    for descendant in element.iter():
        if descendant.tag.startswith(("prompt", "choice", "simple", "feedback", "rubric")):
            descendant.tag = "div"
    within = "".join(ET.tostring(child, encoding="unicode") for child in element)
    return escape(element.text or "", quote=False) + within
