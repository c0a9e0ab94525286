"""Reads what quiz tools export as XML: Moodle's own form, and QTI 1.2, 2 and 3, also as a zip file of items.

A file that declares a document type is refused: that is where entities are declared, which may refer to other files or
grow without end.
"""

import zipfile
import zlib
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from medexam.datasets.own.grids import Cells
from medexam.datasets.own.quiz_texts import make_row, number
from medexam.inputs import MOST_LEVELS, UnreadableError, check_archive, first_line, read_bytes


class _Builder(ET.TreeBuilder):
    _levels = 0

    def doctype(self, name: str, *_: str | None) -> None:
        raise UnreadableError(f"declares the document type {name!r:.40}: take the line <!DOCTYPE ...> out")

    def start(self, tag: str, attrs: dict[str, str]) -> ET.Element:
        self._levels += 1
        if self._levels > MOST_LEVELS:
            raise UnreadableError(f"holds elements more than {MOST_LEVELS} deep in each other")
        return super().start(tag, attrs)

    def end(self, tag: str) -> ET.Element:
        self._levels -= 1
        return super().end(tag)


def read_quiz_xml(path: Path) -> Iterator[tuple[str, Cells]]:
    """The questions of an XML file, or of all such files in a zip file.

    Raises `OSError`, and `UnreadableError` if it is damaged or holds questions in no known form.
    """
    roots = {name: _parse(content) for name, content in _contents(path)}
    known = {name: root for name, root in roots.items() if root.tag in _READERS}
    if not known:
        tags = ", ".join(sorted({f"<{root.tag}>" for root in roots.values()}))
        raise UnreadableError(
            f"holds XML of {tags or 'nothing'}: questions are read as Moodle (<quiz>) or QTI "
            "(<assessmentItem>, <questestinterop>) write them"
        )
    for name, root in known.items():
        for count, row in enumerate(_READERS[root.tag](root), start=1):
            yield f"{name}, question {count}" if len(known) > 1 else f"question {count}", row


def _contents(path: Path) -> Iterator[tuple[str, bytes]]:
    if not zipfile.is_zipfile(path):
        yield path.name, read_bytes(path)
        return
    check_archive(path)
    try:
        with zipfile.ZipFile(path) as archive:
            for name in filter(lambda name: name.lower().endswith(".xml"), archive.namelist()):
                yield name, archive.read(name)
    except (EOFError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
        raise UnreadableError(f"is not packed whole: {first_line(error)}") from None


def _parse(content: bytes) -> ET.Element:
    try:
        root = ET.fromstring(content, ET.XMLParser(target=_Builder()))  # noqa: S314 - refuses document types
    except (ET.ParseError, ValueError, LookupError) as error:
        if isinstance(error, UnreadableError):
            raise
        raise UnreadableError(f"is not XML ({first_line(error)}): export it again") from None
    for element in root.iter():
        # QTI 3 writes qti-choice-interaction for choiceInteraction; each version has namespaces of its own.
        element.tag = str(element.tag).rpartition("}")[2].lower().removeprefix("qti-").replace("-", "")
    for element in root.iter():
        # What is shown after the answer, or to those who mark it, says which is right.
        for hidden in [child for child in element if child.tag.startswith(("feedback", "rubric"))]:
            element.remove(hidden)
    return root


def _inner(element: ET.Element | None) -> str:
    """What stands in an element, as HTML."""
    if element is None:
        return ""
    return escape(element.text or "", quote=False) + "".join(
        ET.tostring(child, encoding="unicode") for child in element
    )


def _text(element: ET.Element, path: str) -> str:
    return "".join(element.findtext(path) or "").strip()


def _moodle(root: ET.Element) -> Iterator[Cells]:
    category = ""
    for question in root.iter("question"):
        kind, stem = question.get("type", ""), _text(question, "questiontext/text")
        answers = [(_text(each, "text"), number(each.get("fraction"))) for each in question.iter("answer")]
        more = {"title": _text(question, "name/text"), "explanation": _text(question, "generalfeedback/text")}
        if kind == "category":
            category = _text(question, "category/text").removeprefix("$course$/").removeprefix("top/")
        elif kind in ("multichoice", "truefalse"):
            yield make_row(stem, answers, category=category, **more)
        elif kind == "shortanswer":
            yield {"question": stem, "answer": [text for text, points in answers if points >= 100], **more}
        else:
            yield f"is a question of type {kind!r:.30}, which has no options: {stem!r:.60}"


def _qti(root: ET.Element) -> Iterator[Cells]:
    """An item of QTI 2 or 3, with one choice among its interactions."""
    body, choices = root.find("itembody"), list(root.iter("choiceinteraction"))
    interactions = [each for each in root.iter() if each.tag.endswith("interaction")]
    if body is None or len(choices) != 1 or len(interactions) > 1:
        yield f"has {len(interactions)} interactions, {len(choices)} of them choices: it is read if one choice is all"
        return
    if root.find(".//assessmentstimulusref") is not None:
        yield "belongs to a text in another file, which is not read"
        return
    (choice,) = choices
    name = choice.get("responseIdentifier") or choice.get("response-identifier")
    declared = [each for each in root.iter("responsedeclaration") if each.get("identifier") == name]
    right = {(value.text or "").strip() for each in declared for value in each.iterfind("correctresponse/value")}
    points = {
        entry.get("mapKey") or entry.get("map-key"): number(entry.get("mappedValue") or entry.get("mapped-value"))
        for each in declared
        for entry in each.iter("mapentry")
    }
    prompt, tail = _inner(choice.find("prompt")), choice.tail
    options = [
        (_inner(each), 100.0 * (each.get("identifier") in right) if right else points.get(each.get("identifier"), 0.0))
        for each in choice.iter("simplechoice")
    ]
    choice.clear()
    choice.tail = f"{prompt}{tail or ''}"
    stem = _inner(body).replace("<choiceinteraction />", "<br/>")
    yield make_row(stem, options, id=root.get("identifier"), title=root.get("title"))


def _qti_1(root: ET.Element) -> Iterator[Cells]:
    """The items of QTI 1.2, whose right choices are those that set points."""
    for item in root.iter("item"):
        presented = item.find("presentation")
        stem = None if presented is None else presented.find(".//mattext")
        labels = list(item.iter("response_label"))
        right = {
            equal.text
            for condition in item.iter("respcondition")
            if any(number(each.text) > 0 for each in condition.iter("setvar"))
            for path in ("conditionvar/varequal", "conditionvar/and/varequal")
            for equal in condition.iterfind(path)
        }
        if len(list(item.iter("render_choice"))) != 1:
            yield f"is an item without one choice: {_raw(stem)!r:.60}"
        else:
            options = [(_raw(label.find(".//mattext")), 100.0 * (label.get("ident") in right)) for label in labels]
            yield make_row(_raw(stem), options, id=item.get("ident"), title=item.get("title"))


def _raw(element: ET.Element | None) -> str:
    """The text of an element, which is HTML by itself."""
    return "" if element is None else "".join(element.itertext()).strip()


_READERS: Any = {"quiz": _moodle, "assessmentitem": _qti, "questestinterop": _qti_1}
