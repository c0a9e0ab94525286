"""What a user sees when the data of a stored run change: golds are scored anew, texts are asked anew, with one line."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from medexam.datasets import load_exam_set
from medexam.specs import DatasetSpec

Record = dict[str, Any]


@dataclass
class Exam:
    """A file of HEAD-QA v2 with ten questions, and a spec whose model always answers 1."""

    folder: Path
    spec: Path
    records: list[Record] = field(default_factory=list)

    @property
    def file(self) -> Path:
        return self.folder / "en.jsonl"

    @property
    def runs(self) -> list[Path]:
        """The run folders, by name."""
        return sorted(path.parent for path in (self.folder / "runs").glob("*/spec.json"))

    def write(self) -> None:
        lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in self.records)
        self.file.write_text("".join(lines), encoding="utf-8")


@pytest.fixture
def exam(tmp_path, spec) -> Exam:
    made = Exam(tmp_path, spec(dataset={"name": "headqa_v2", "path": str(tmp_path / "en.jsonl")}))
    made.records = [
        {
            "name": one.exam.name,
            "year": one.exam.year,
            "category": "biology",
            "qid": one.number,
            "qtext": one.stem,
            "ra": 1,
            "image": None,
            "answers": [{"aid": option.number, "atext": option.text} for option in one.options],
        }
        for one in load_exam_set(DatasetSpec(disciplines=("biology",))).questions[:10]
    ]
    made.write()
    return made


@pytest.fixture
def run(medexam, exam):
    """`run()` -> the run's document and the lines on standard error that speak of data."""

    def call(*arguments: object) -> tuple[Record, list[str]]:
        code, out, err = medexam("run", *(arguments or (exam.spec,)), "--json")
        assert code == 0, err
        (document,) = json.loads(out)
        return document, [line for line in err.splitlines() if "changed" in line]

    return call


def _cut(folder: Path, kept: int) -> None:
    """As if the run had been killed after so many answers."""
    path = folder / "predictions.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:kept]))
    (folder / "metrics.json").unlink()


def test_a_corrected_gold_is_scored_anew_and_asks_nothing(run, medexam, exam) -> None:
    first, _ = run()
    (folder,) = exam.runs
    answers = (folder / "predictions.jsonl").read_bytes()
    exam.records[3]["ra"] = exam.records[4]["ra"] = 2
    exam.write()
    second, lines = run()
    assert lines == [
        f"medexam: run {folder.name}: golds of its data have changed since it was scored; its scores are made again"
    ]
    assert (first["metrics"]["measures"]["accuracy"]["value"], second["metrics"]["measures"]["accuracy"]["value"]) == (
        1.0,
        0.8,
    )
    assert json.loads((folder / "metrics.json").read_text()) == second["metrics"]
    assert (exam.runs, (folder / "predictions.jsonl").read_bytes()) == ([folder], answers)
    assert run()[1] == [], "it is said once"
    exam.records[5]["ra"] = 2
    exam.write()
    code, out, err = medexam("report", folder, "--json")
    assert (code, json.loads(out)[0]["metrics"]["right"], err.count("the files of its data have changed")) == (0, 8, 1)
    assert run()[0]["metrics"]["right"] == 7
    assert "have changed" not in medexam("report", folder, "--json")[2]


def test_a_killed_run_is_resumed_on_corrected_golds(run, exam) -> None:
    run()
    _cut(exam.runs[0], 6)
    exam.records[0]["ra"] = 3
    exam.write()
    resumed, (line,) = run("--resume", exam.runs[0])
    assert "its scores are made again" in line
    assert (resumed["metrics"]["n"], resumed["metrics"]["right"]) == (10, 9)
    exam.records[1]["ra"] = 3
    exam.write()
    again, _ = run("--resume", exam.runs[0])
    assert again["metrics"]["right"] == 8, "although nothing is pending"


def test_a_withdrawn_gold_leaves_its_question_out_until_it_is_given_again(run, exam) -> None:
    run()
    _cut(exam.runs[0], 9)
    exam.records[0]["ra"] = 0
    exam.write()
    resumed, _ = run("--resume", exam.runs[0])
    assert (resumed["metrics"]["n"], resumed["metrics"]["selected"]) == (9, 9)
    exam.records[0]["ra"] = 1
    exam.write()
    again, _ = run()
    assert (again["metrics"]["n"], again["status"], len(exam.runs)) == (10, "complete", 1)
    exam.records[5]["ra"] = 0
    exam.write()
    assert run()[0]["metrics"]["selected"] == 9


def _change_stem(record: Record) -> None:
    record["qtext"] += "!"


def _reverse_options(record: Record) -> None:
    texts = [answer["atext"] for answer in record["answers"]]
    for answer, text in zip(record["answers"], reversed(texts), strict=True):
        answer["atext"] = text


@pytest.mark.parametrize("change", [_change_stem, _reverse_options])
def test_changed_texts_are_asked_anew_and_old_answers_are_never_scored_on_them(
    run, medexam, refused, exam, change
) -> None:
    run()
    (old,) = exam.runs
    before = {path.name: path.read_bytes() for path in old.iterdir() if path.is_file()}
    for record in exam.records:
        change(record)
        record["ra"] = 4
    exam.write()
    new, lines = run()
    assert not lines
    assert (new["metrics"]["right"], len(exam.runs)) == (0, 2)
    code, out, err = medexam("report", old, "--json")
    (shown,) = json.loads(out)
    assert (code, shown["metrics"]) == (0, json.loads(before["metrics.json"])), err
    assert "the files of its data have changed since it was asked" in " ".join(shown["warnings"])
    line = refused("compare", old, Path("runs") / new["run_id"])
    assert "no question is scored by both runs (Dropped: 10 with another text or right answer" in line
    _cut(old, 9)
    (shown,) = json.loads(medexam("report", old, "--json")[1])
    assert (shown["metrics"]["n"], shown["metrics"]["right"]) == (9, 9), "on the texts and golds that were asked"
    line = refused("run", "--resume", old)
    assert "cannot continue: the texts of its data have changed since it was asked" in line


def test_what_changes_no_question_asks_nothing(run, exam) -> None:
    first, _ = run()
    moved = exam.folder / "elsewhere" / "other.jsonl"
    moved.parent.mkdir()
    lines = [json.dumps(dict(reversed(record.items()))) for record in reversed(exam.records)]
    moved.write_bytes("".join(f"{line}\r\n" for line in lines).encode())
    exam.file.unlink()
    second, said = run(exam.spec, "--set", f"dataset.path={moved}")
    assert (second["run_id"], second["metrics"], said) == (first["run_id"], first["metrics"], [])
