"""Names from outside that are no names: they reach MLflow, are no tags in what is written, and name no other place."""

import csv
import json
import random
import re
from pathlib import Path

from markdown_tags import TAG, outside_of_blocks
from soak.children import OUT
from soak.pairs import FORMATS
from soak.results import copies
from soak.stage import Stage

EVIL = "<script>alert(1)</script>"
IMAGE = "<img src=x onerror=alert(1)>"
PIECES = (
    *(EVIL, IMAGE, "[here](javascript:alert(1))", "&lt;b&gt;", "</td></tr>", "<!-- ", "```text\n", "@home", "100 %"),
    *("%s %(x)s {0} {x}", "[red]", "[/]", "'", '"', '"""', "a\nb", "a\r\nb", "=cmd|' /C calc'!A0", "+1", "-1"),
    *("../../../up", "/etc/passwd", "..", ".", "a/b/c", "x" * 300, "é" * 300, "🩺", "e\u0301", "\x1b[31mred", "\x07"),
    *("\x00", "\x85", "\u202eleft", "\u2066", "\ufeff", "\ud800", "日本語", "  ", "", "$HOME", "`id`", ";", "\\", "|"),
    *(
        "NaN",
        "null",
        "~",
        "a: b",
        "- a",
        "#",
        "null\n",
        "metric.a",
        "__class__",
        "CON",
        "%2e%2e%2f",
        "$\\alpha$",
        "$\\frac$",
        "\ufffe",
    ),
)
METRIC = """import json
from pathlib import Path
NAMES = json.loads((Path(__file__).parent / "names.json").read_text())

def score(question, gold, prediction):
    return {name: 1.0 for name in NAMES}
"""
_UNSEEN = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def name_things(stage: Stage) -> None:
    """Run questions of one's own, and import answers, under names drawn by chance, and show them in every form."""
    chance, folder = stage.chance, stage.folder / "inside"
    folder.mkdir()
    if (stage.folder / "runs").exists():
        (stage.folder / "runs").rename(folder / "runs")
    (stage.scratch / "streams-0").mkdir(exist_ok=True)
    around = {*stage.folder.parent.iterdir(), *stage.folder.iterdir()}
    write_files(folder, (stage.inputs / "keys.txt").read_text(encoding="utf-8").splitlines(), chance)
    for words in (
        ["run", "spec.json", "--runs-dir", "runs"],
        ["import", "answers.csv", "--dataset", "headqa_sample", "--language", "en", "--runs-dir", "runs"],
        ["report", "runs", "--markdown", "report.md"],
        ["report", "runs", "--html", "page.html"],
        ["list", "--runs-dir", "runs"],
        ["track", "runs"],
        *(["export", "runs", "--to", name, "--out", f"exported/{name}"] for name in chance.sample(FORMATS, 2)),
    ):
        stage.carry_out("named", words, cwd=folder)
        out = (stage.scratch / "streams-0" / OUT).read_text(encoding="utf-8", errors="replace")
        if shown := _UNSEEN.search(out + stage.children[0].said):
            stage.blame(f"medexam {words[0]} prints {shown[0]!r} to a terminal")
    # `run` alone may refuse a name, and nothing may fail of what it took.
    for step in stage.trial.steps[1:]:
        if step.statuses != [0] and any(folder.glob("runs/*/spec.json")):
            stage.blame(f"{step.words[0]} ended with {step.statuses[0]}")
    _check_files(stage, folder)
    if left := [path.name for path in {*stage.folder.parent.iterdir(), *stage.folder.iterdir()} - around]:
        stage.blame(f"outside the folder is {left}")


def draw_name(chance: random.Random) -> str:
    """A name from outside: one of `PIECES`, or some together."""
    return "".join(chance.choice(PIECES) for _ in range(chance.choice([1, 1, 2, 3])))


def write_files(folder: Path, keys: list[str], chance: random.Random) -> None:
    """The spec with its questions, its metric and its replies, and a table of answers to import."""
    disciplines = [draw_name(chance) for _ in range(3)]
    with (folder / "questions.csv").open("w", encoding="utf-8", errors="backslashreplace", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["stem", "A", "B", "C", "D", "answer", "subject"])
        table.writerows([f"Which is {n}?", "a", "b", "c", "d", "B", disciplines[n % 3]] for n in range(6))
    for name, text in (("scores.py", METRIC), ("replies.yaml", '{"*": "{Answer: 2}"}')):
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "names.json").write_text(json.dumps([draw_name(chance) for _ in range(3)]), encoding="utf-8")
    columns = {"stem": "stem", "options": ["A", "B", "C", "D"], "answer": "answer", "subject": "subject"}
    dataset = {"kind": "choice", "path": "questions.csv", "columns": columns}
    document = {
        "name": draw_name(chance) if chance.random() < 0.1 else "named",
        "description": draw_name(chance),
        "dataset": dataset | ({"name": draw_name(chance)} if chance.random() < 0.5 else {}),
        "model": {"engine": "scripted", "path": "replies.yaml"},
        "metrics": ["./scores.py:score"],
        "program": {"kind": "zero_shot"},
    }
    (folder / "spec.json").write_text(json.dumps(document), encoding="utf-8")
    with (folder / "answers.csv").open("w", encoding="utf-8", errors="backslashreplace", newline="") as stream:
        table, model = csv.writer(stream), draw_name(chance)
        table.writerow(["question", "answer", "model"])
        table.writerows([key, "1", model] for key in keys)


def _check_files(stage: Stage, folder: Path) -> None:
    there = {path.parent.name for path in folder.glob("runs/*/spec.json")}
    sent = copies(folder / "runs") if (folder / "runs" / "mlflow.db").exists() else []
    if lacking := there.difference(row[0] for row in sent):
        stage.blame(f"MLflow lacks {sorted(lacking)}")
    for path in [*folder.glob("runs/*/report.md"), *folder.glob("report.md")]:
        if tag := TAG.search(text := outside_of_blocks(path.read_text(encoding="utf-8"))):
            stage.blame(f"{path.name} holds a tag: {text[tag.start() : tag.start() + 60]!r}")
    page = folder / "page.html"
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    if EVIL in text or IMAGE in text:
        stage.blame("the page holds a tag of others'")
