"""What quiz tools export, as rows: GIFT, Aiken, Anki, Moodle's XML and QTI 2 and 3."""

import zipfile
from pathlib import Path
from typing import Any

import pytest

from medexam.datasets import load_exam_set, read_file
from medexam.errors import DatasetError
from medexam.specs import DatasetSpec

GIFT = r"""// question bank
$CATEGORY: $course$/Physiology

::first::[html]Which ion, at 1\:1, has <b>one</b> charge? {
  ~Ca<sup>2+</sup>#two of them
  =Na<sup>+</sup> \= sodium#yes
  ~%-50%Mg\{x\}
  ####See the table.
}

Which are gases? {~%50%Oxygen ~%50%Nitrogen ~%-100%Iron}
Insulin lowers glucose.{T}

The {=pancreas =Pancreas} makes insulin.

The normal pH is {~7.0 =7.4} in blood.

How many? {#4:1}

Pair them. {=a -> 1 =b -> 2}

Just a text.
"""
GIFT_ROWS = [
    {
        "question": "Which ion, at 1:1, has one charge?",
        "options": {"A": "Ca²⁺", "B": "Na⁺ = sodium", "C": "Mg{x}"},
        "answer": "B",
        "title": "first",
    },
    {"question": "Which are gases?", "options": {"A": "Oxygen", "B": "Nitrogen", "C": "Iron"}, "answer": ["A", "B"]},
    {"question": "Insulin lowers glucose.", "options": {"A": "True", "B": "False"}, "answer": "A"},
    {"question": "The _____ makes insulin.", "answer": ["pancreas", "Pancreas"]},
    {"question": "The normal pH is _____ in blood.", "options": {"A": "7.0", "B": "7.4"}, "answer": "B"},
    "is a question in writing, in numbers or of pairs, which has no options: 'How many?'",
    "is a question in writing, in numbers or of pairs, which has no options: 'Pair them.'",
    "has no answers between braces: 'Just a text.'",
]
GIFT_LINES = [4, 11, 12, 14, 16, 18, 20, 20]


def _read(path: Path, text: str) -> list[Any]:
    path.write_text(text, encoding="utf-8")
    return [row.record for row in read_file(path).rows]


@pytest.mark.parametrize("name", ["a.gift", "a.txt", "a.gift.gz"])
def test_gift(tmp_path, name) -> None:
    import gzip

    content = GIFT.encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    table = read_file(tmp_path / name)
    rows = [row.record if isinstance(row.record, str) else {**row.record} for row in table.rows]
    assert {row.pop("category", None) for row in rows if isinstance(row, dict)} == {"$course$/Physiology"}
    assert rows == GIFT_ROWS
    assert [row.place for row in table.rows] == [f"line {line}" for line in GIFT_LINES]


AIKEN = """Which gland makes
thyroxine?
A) Thyroid
B) Pancreas, which
lies behind the stomach
C. Liver
ANSWER: A

Which are vessels?
A. Aorta
B. Femur
C. Vena cava
ANSWER: A, C

What is left over?
A. x
"""


def test_aiken(tmp_path) -> None:
    assert _read(tmp_path / "a.txt", AIKEN.replace("\n", "\r\n")) == [
        {
            "question": "Which gland makes\nthyroxine?",
            "options": {"A": "Thyroid", "B": "Pancreas, which\nlies behind the stomach", "C": "Liver"},
            "answer": "A",
        },
        {
            "question": "Which are vessels?",
            "options": {"A": "Aorta", "B": "Femur", "C": "Vena cava"},
            "answer": ["A", "C"],
        },
        "has no line ANSWER: for the question 'What is left over?'",
    ]


def test_lists_of_questions_like_aiken(tmp_path) -> None:
    first = "1. Which?\na) x\nb) y: z\nAnswer: b) y: z\nExplanation: So it is.\n\n"
    assert _read(tmp_path / "a.txt", f"{first}2. Then?\n(A) u\n(B) v\nCorrect answer: (A)\n") == [
        {"question": "1. Which?", "options": {"A": "x", "B": "y: z"}, "answer": "B", "explanation": "So it is."},
        {"question": "2. Then?", "options": {"A": "u", "B": "v"}, "answer": "A"},
    ]


@pytest.mark.parametrize(
    ("head", "lines", "rows"),
    [
        (
            "#separator:tab\n#html:true\n",
            "Which?<br>A) x<br>B) y\tB\n",
            [{"question": "Which?\nA) x\nB) y", "answer": "B"}],
        ),
        (
            "#separator:Semicolon\n#html:true\n#deck column:1\n#tags column:4\n",
            'Law;"Which; exactly?";"A &amp; B";old\n',
            [{"deck": "Law", "question": "Which; exactly?", "answer": "A & B", "tags": "old"}],
        ),
        (
            "#separator:,\n#columns:Front,One,Back\n",
            "q,x,A\nr,y\n",
            [{"Front": "q", "One": "x", "Back": "A"}, "has 2 cells"],
        ),
        ("#separator:Tab\n#deck column:x\n#tags column:9\n", "a\tb\tc\n", [{"1": "a", "2": "b", "3": "c"}]),
    ],
)
def test_anki(tmp_path, head, lines, rows) -> None:
    read = _read(tmp_path / "a.txt", head + lines)
    assert [row[:11] if isinstance(row, str) else row for row in read] == rows


MOODLE = """<?xml version="1.0" encoding="UTF-8"?>
<quiz>
<question type="category"><category><text>$course$/top/Anatomy</text></category></question>
<question type="multichoice"><name><text>one</text></name>
 <questiontext format="html"><text><![CDATA[<p>Which is <b>right</b>, &lt;5?</p>]]></text></questiontext>
 <generalfeedback format="html"><text>Because.</text></generalfeedback>
 <answer fraction="0"><text>x</text><feedback><text>No</text></feedback></answer>
 <answer fraction="100"><text><![CDATA[H<sub>2</sub>O]]></text></answer>
</question>
<question type="multichoice"><questiontext><text>Which two?</text></questiontext><single>false</single>
 <answer fraction="50"><text>a</text></answer><answer fraction="-100"><text>b</text></answer>
 <answer fraction="50"><text>c</text></answer>
</question>
<question type="truefalse"><questiontext><text>Is it?</text></questiontext>
 <answer fraction="0"><text>true</text></answer><answer fraction="100"><text>false</text></answer></question>
<question type="shortanswer"><questiontext><text>Name it.</text></questiontext>
 <answer fraction="100"><text>Femur</text></answer><answer fraction="50"><text>Bone</text></answer></question>
<question type="essay"><questiontext><text>Write.</text></questiontext></question>
</quiz>
"""


def test_moodle_xml(tmp_path) -> None:
    one, two, three, four, five = _read(tmp_path / "a.xml", MOODLE)
    assert one == {
        "question": "Which is right, <5?",
        "options": {"A": "x", "B": "H₂O"},
        "answer": "B",
        "title": "one",
        "category": "Anatomy",
        "explanation": "Because.",
    }
    assert (two["answer"], three["options"], three["answer"]) == (["A", "C"], {"A": "true", "B": "false"}, "B")
    assert (four["question"], four["answer"]) == ("Name it.", ["Femur"])
    assert five == "is a question of type 'essay', which has no options: 'Write.'"


QTI = """<?xml version="1.0"?>
<assessmentItem xmlns="http://www.imsglobal.org/xsd/imsqti_v2p1" identifier="item{n}" title="Choice {n}">
 <responseDeclaration identifier="R" cardinality="single" baseType="identifier">
  {declared}
 </responseDeclaration>
 <itemBody><p>A man of 30 <em>coughs</em> &amp; sneezes.</p>
  <choiceInteraction responseIdentifier="R" shuffle="false" maxChoices="1"><prompt>What now?</prompt>
   <simpleChoice identifier="c1">Wait<feedbackInline identifier="c1">Wrong!</feedbackInline></simpleChoice>
   <simpleChoice identifier="c2">Give O<sub>2</sub></simpleChoice>
  </choiceInteraction><p>Be quick.</p></itemBody>
 <modalFeedback identifier="x">It is c2.</modalFeedback>
</assessmentItem>
"""
CORRECT = "<correctResponse><value>c2</value></correctResponse>"
MAPPED = '<mapping><mapEntry mapKey="c1" mappedValue="0"/><mapEntry mapKey="c2" mappedValue="1"/></mapping>'
QTI_3 = """<qti-assessment-item xmlns="http://www.imsglobal.org/xsd/imsqtiasi_v3p0" identifier="item1" title="Choice 1">
<qti-response-declaration identifier="R"><qti-correct-response><qti-value>c2</qti-value></qti-correct-response>
</qti-response-declaration><qti-item-body><p>A man of 30 coughs &amp; sneezes.</p>
<qti-choice-interaction response-identifier="R"><qti-prompt>What now?</qti-prompt>
<qti-simple-choice identifier="c1">Wait</qti-simple-choice>
<qti-simple-choice identifier="c2">Give O<sub>2</sub></qti-simple-choice></qti-choice-interaction>
<p>Be quick.</p></qti-item-body></qti-assessment-item>"""
ITEM = {
    "question": "A man of 30 coughs & sneezes.\nWhat now?\nBe quick.",
    "options": {"A": "Wait", "B": "Give O₂"},
    "answer": "B",
    "id": "item1",
    "title": "Choice 1",
}


@pytest.mark.parametrize("text", [QTI.format(n=1, declared=CORRECT), QTI.format(n=1, declared=MAPPED), QTI_3])
def test_qti_items(tmp_path, text) -> None:
    (row,) = _read(tmp_path / "a.xml", text)
    assert {**row, "question": " ".join(row["question"].split())} == {
        **ITEM,
        "question": " ".join(ITEM["question"].split()),
    }


def test_a_zip_file_of_items(tmp_path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("imsmanifest.xml", "<manifest/>")
        archive.writestr("items/1.xml", QTI.format(n=1, declared=CORRECT))
        archive.writestr("items/2.xml", QTI.format(n=2, declared="").replace("choiceInteraction", "orderInteraction"))
        archive.writestr("../p.png", b"")
    table = read_file(tmp_path / "a.zip")
    assert [row.place for row in table.rows] == ["items/1.xml, question 1", "items/2.xml, question 1"]
    assert isinstance(table.rows[0].record, dict)
    assert table.rows[1].record == "has 1 interactions; only items with exactly one, a choice, are read"


ENTITY = '<!DOCTYPE quiz [<!ENTITY a "b"><!ENTITY c SYSTEM "file:///etc/passwd">]><quiz>&a;&c;</quiz>'


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.xml", ENTITY, "declares the document type 'quiz'"),
        ("a.xml", '<!DOCTYPE quiz SYSTEM "http://127.0.0.1/x.dtd"><quiz/>', "declares the document type"),
        ("a.xml", "<quiz>&a;</quiz>", "is not XML"),
        ("a.xml", "<quiz><question>", "is not XML"),
        ("a.xml", "<html/>", "holds XML of <html>: it is read from Moodle"),
        ("a.xml", "<quiz/>", "holds no row"),
        ("a.xml", "<b>" * 101 + "</b>" * 101, "more than 100 levels deep"),
        ("a.zip", "x", "is not XML"),
        ("a.txt", "Only a text.\nAnd another.\n", "holds no table, and no questions as Aiken, GIFT or Anki"),
        ("a.apkg", "x", "also with .gz after it; export its notes as plain text"),
        ("a.xls", "x", "save it as .xlsx or CSV"),
        ("a.docx", "x", r"files that end in \.jsonl, .*\.gift, \.xml, \.zip, also with \.gz after it$"),
    ],
)
def test_what_is_no_quiz_is_refused(tmp_path, name, content, said) -> None:
    with pytest.raises(DatasetError, match=said):
        _read(tmp_path / name, content)


def test_a_text_may_be_a_table_or_json(tmp_path) -> None:
    assert _read(tmp_path / "a.txt", "question|A|answer\nWhich, then?|x, y|A\n") == [
        {"question": "Which, then?", "A": "x, y", "answer": "A"}
    ]
    assert _read(tmp_path / "a.txt", '{"question": "q"}\n{"question": "r"}\n') == [{"question": "q"}, {"question": "r"}]
    assert _read(tmp_path / "a.txt", "question;A\nV_{T} {x=1};y\n") == [{"question": "V_{T} {x=1}", "A": "y"}]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.gift", GIFT.split("$CATEGORY")[0] + "Which? {~x =y}\n\nThen? {=u ~v}\n"),
        ("a.txt", AIKEN.partition("Which are")[0]),
    ],
)
def test_golds_are_those_of_the_quiz(tmp_path, name, text) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    exams = load_exam_set(DatasetSpec.model_validate({"kind": "choice", "path": tmp_path / name}))
    golds = [question.options[exams.golds[question.key].number - 1].text for question in exams.questions]
    assert golds == (["y", "u"] if name == "a.gift" else ["Thyroid"])
