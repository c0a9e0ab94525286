"""Files of known questions in the layouts that people use: shape, names, marks, numbering and empty cells vary."""

import csv
import io
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STEMS = ("Which drug treats {}?", "What causes {}?", "The first sign of {} is:", "In {}, all are true except:")
THINGS = (
    "gout",
    "asthma",
    "anaemia",
    "measles",
    "rickets",
    "sepsis",
    "migraine",
    "goitre",
    "mumps",
    "tetanus",
    "ileus",
)
OPTIONS = (
    *(
        "Colchicine",
        "A virus",
        "Iron",
        "Vitamin D",
        "B. pertussis",
        "Fever",
        "None of these",
        "1 and 2",
        "Rest",
        "12 mg",
    ),
    *(
        "A. fumigatus",
        "Type 2",
        "10",
        "Insulin, then glucose",
        "K+",
        "Thyroxine",
        "both lungs",
        "C3a",
        "the right heart",
    ),
)
NAMES: Sequence[tuple[str, str, str]] = (
    *(("question", "option_{}", "answer"), ("Question", "Option {}", "Correct Answer"), ("stem", "{}", "label")),
    *(("question", "op{}", "cop"), ("pregunta", "opcion_{}", "respuesta_correcta"), ("Frage", "Antwort {}", "Lösung")),
    *(("énoncé", "Proposition {}", "bonne_réponse"), ("domanda", "risposta {}", "risposta_corretta")),
    *(("pergunta", "alternativa_{}", "gabarito"), ("questionText", "choice{}", "correctAnswer")),
    *(
        ("Question - max 120 characters", "Answer {} - max 75 characters", "Correct answer(s)"),
        ("qtext", "ending{}", "ra"),
    ),
)
LISTS = ("options", "choices", "opciones", "answer_options", "alternatives", "option", "answers", "candidates")


@dataclass(frozen=True)
class Known:
    """A question as it is."""

    stem: str
    options: tuple[str, ...]
    right: tuple[int, ...]
    """Places from 0."""


@dataclass(frozen=True)
class Layout:
    """One file of known questions."""

    name: str
    """The file's name."""
    text: str
    known: tuple[Known, ...]
    told: str
    """What was drawn."""


def draw_layout(seed: int) -> Layout:
    """A layout that the seed draws."""
    draw = random.Random(seed)
    known = _questions(draw)
    shape = draw.choice(sorted(SHAPES))
    names = draw.choice(NAMES)
    records, answered = SHAPES[shape](draw, known, names)
    for record, extra in zip(records, _extras(draw, known), strict=True):
        record |= {name: value for name, value in extra.items() if name not in record}
    if shape == "columns" and draw.random() < 0.25:
        records = [dict(zip(map(str, range(1, 20)), record.values(), strict=False)) for record in records]
        answered += ", without names"
    flat = all(isinstance(value, (str, int, float, type(None))) for record in records for value in record.values())
    form = draw.choice(["csv", "csv;", "tsv", "jsonl", "json"] if flat else ["jsonl", "json"])
    told = f"{shape}, {answered}, {form}, {names}"
    return Layout(f"mine.{form.rstrip(';')}", _write(records, form), known, told)


def _questions(draw: random.Random) -> tuple[Known, ...]:
    rows, options = draw.randint(3, 11), draw.randint(3, 6)
    fewer = draw.random() < 0.3
    known = []
    for place in range(rows):
        count = options - (fewer and place > 1 and draw.random() < 0.3)
        texts = tuple(draw.sample(OPTIONS, count))
        stem = draw.choice(STEMS).format(THINGS[place])
        known.append(Known(stem, texts, (draw.randrange(count),)))
    if draw.random() < 0.1:
        known[0] = Known(known[0].stem, known[0].options, (0, 1))
    return tuple(known)


def _answers(draw: random.Random, known: Sequence[Known], labels: Sequence[str]) -> tuple[list[Any], str]:
    """What each row says is right, in one of the ways in which files say it; `labels` are those of the options."""
    ways: dict[str, Callable[[Known, int], Any]] = {
        "letters": lambda _, place: "ABCDEFG"[place],
        "small letters": lambda _, place: "abcdefg"[place],
        "letters in brackets": lambda _, place: f"({'ABCDEFG'[place]})",
        "from 0": lambda _, place: place,
        "from 1": lambda _, place: place + 1,
        "floats": lambda _, place: f"{place + 1}.0",
        "texts": lambda each, place: each.options[place],
        "letter and text": lambda each, place: f"{'ABCDEFG'[place]}. {each.options[place]}",
        "labels": lambda _, place: labels[place],
        "words": lambda _, place: f"Option {'ABCDEFG'[place]}",
    }
    way = draw.choice(sorted(ways))
    join = draw.choice([",", ", ", ";"])
    said = [
        ways[way](each, each.right[0])
        if len(each.right) == 1
        else join.join(str(ways[way](each, r)) for r in each.right)
        for each in known
    ]
    return said, way


def _in_columns(draw: random.Random, known: Sequence[Known], names: tuple[str, str, str]) -> Any:
    stem, option, answer = names
    labels = draw.choice(["ABCDEFG", "abcdefg", "1234567", "0123456"])
    empty = draw.choice(["", "", "nan", "N/A", "-"])
    width = max(len(each.options) for each in known)
    marks = draw.choice(["", "", "{}) ", "{}. "])
    columns = [option.format(label) for label in labels[:width]]
    said, way = _answers(draw, known, columns)
    records = []
    for each, answered in zip(known, said, strict=True):
        texts = [marks.format("ABCDEFG"[place]) + text for place, text in enumerate(each.options)]
        texts += [empty] * (width - len(texts))
        records.append({stem: each.stem, **dict(zip(columns, texts, strict=True)), answer: answered})
    return records, f"{way}, columns {columns[0]}, marks {marks!r}, empty {empty!r}"


def _in_list(draw: random.Random, known: Sequence[Known], names: tuple[str, str, str]) -> Any:
    stem, _, answer = names
    column = draw.choice(LISTS)
    form = draw.choice(["list", "marked", "mapping", "mappings", "labels", "json text", "shuffled marks"])
    said, way = _answers(draw, known, "ABCDEFG")
    records = []
    for each, answered in zip(known, said, strict=True):
        labelled = list(zip("ABCDEFG", each.options, strict=False))
        value: Any = list(each.options)
        if form == "marked":
            value = [f"{label}) {text}" for label, text in labelled]
        elif form == "shuffled marks":
            value = [f"{label}: {text}" for label, text in draw.sample(labelled, len(labelled))]
        elif form == "mapping":
            value = dict(labelled)
        elif form == "mappings":
            value = [{"key": label, "value": text} for label, text in labelled]
        elif form == "labels":
            value = {"text": list(each.options), "label": [label for label, _ in labelled]}
        elif form == "json text":
            value = json.dumps(list(each.options))
        records.append({stem: each.stem, column: value, answer: answered})
    return records, f"{way}, {column} as {form}"


def _in_cell(draw: random.Random, known: Sequence[Known], names: tuple[str, str, str]) -> Any:
    stem, _, answer = names
    column = draw.choice(LISTS[:5])
    mark = draw.choice(["{}) ", "{}. ", "({}) "])
    apart = draw.choice(["\n", "<br>", "|", "; "])
    said, way = _answers(draw, known, "ABCDEFG")
    lines = [[mark.format("ABCDEFG"[p]) + text for p, text in enumerate(each.options)] for each in known]
    if apart in "|; ":
        lines = [list(each.options) for each in known]
    if draw.random() < 0.4 and apart in ("\n", "<br>"):
        records = [{stem: apart.join([each.stem, *line])} for each, line in zip(known, lines, strict=True)]
    else:
        records = [{stem: each.stem, column: apart.join(line)} for each, line in zip(known, lines, strict=True)]
    return [
        record | {answer: each} for record, each in zip(records, said, strict=True)
    ], f"{way}, cell {mark} {apart!r}"


def _with_marks(draw: random.Random, known: Sequence[Known], names: tuple[str, str, str]) -> Any:
    """The right option is marked at the option, or in a list of its own."""
    stem = names[0]
    forms = ["flags", "one hot", "sign"]
    if all(len(each.right) == 1 for each in known):
        forms += ["wrong beside", "wrong columns"]
    form = draw.choice(forms)
    records: list[dict[str, Any]] = []
    for each in known:
        right = [place in each.right for place in range(len(each.options))]
        wrong = [text for place, text in enumerate(each.options) if place not in each.right]
        if form == "flags":
            options = [{"text": text, "isCorrect": so} for text, so in zip(each.options, right, strict=True)]
            records.append({stem: each.stem, "options": options})
        elif form == "one hot":
            records.append({stem: each.stem, "options": list(each.options), "answer": list(map(int, right))})
        elif form == "sign":
            options = [f"*{text}" if so else text for text, so in zip(each.options, right, strict=True)]
            records.append({stem: each.stem, "options": options})
        else:
            listed = {"incorrect_answers": wrong} if form == "wrong beside" else {}
            listed |= {f"distractor{n}": text for n, text in enumerate(wrong, 1)} if form == "wrong columns" else {}
            records.append({stem: each.stem, "correct_answer": each.options[each.right[0]], **listed})
    width = {name: None for record in records for name in record}
    return [{**width, **record} for record in records], form


SHAPES = {"columns": _in_columns, "list": _in_list, "cell": _in_cell, "marks": _with_marks}


def _extras(draw: random.Random, known: Sequence[Known]) -> list[dict[str, Any]]:
    kinds: dict[str, Callable[[int], Any]] = {
        "id": lambda place: place,
        "No.": lambda place: place + 1,
        "year": lambda place: draw.choice([2019, 2020]),
        "difficulty": lambda place: draw.randint(1, 3),
        "topic": lambda place: draw.choice(["heart", "lung"]),
        "explanation": lambda place: f"Because of {known[place].options[known[place].right[0]]}.",
        "source": lambda place: "A",
        "exam": lambda place: draw.choice(["2019/1", "2019/2"]),
        "context": lambda place: draw.choice(["", f"The answer is {'ABCDEFG'[known[place].right[0]]}."]),
        "tags": lambda place: draw.choice(["a", "b", "c"]),
        "image": lambda place: draw.choice(["", "x.png", "False"]),
    }
    chosen = draw.sample(sorted(kinds), draw.randint(0, 4))
    return [{name: kinds[name](place) for name in chosen} for place in range(len(known))]


def _write(records: Sequence[dict[str, Any]], form: str) -> str:
    if form == "jsonl":
        return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    if form == "json":
        return json.dumps(list(records), ensure_ascii=False)
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter={"csv": ",", "csv;": ";", "tsv": "\t"}[form])
    writer.writerow(records[0])
    writer.writerows(record.values() for record in records)
    return stream.getvalue()


def write_layout(layout: Layout, folder: Path) -> Path:
    """The file of a layout in a folder."""
    path = folder / layout.name
    path.write_text(layout.text, encoding="utf-8")
    return path
