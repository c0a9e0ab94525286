"""What a data set of one's own declares of its scoring is what is scored, and nothing else."""

import csv
import json
from pathlib import Path

import pytest

COLUMNS = "stem: question, options: [A, B, C], answer: answer, subject: topic"
PENALTY = ", scoring: {penalty: 1/3}"


@pytest.fixture
def scores(medexam, tmp_path, monkeypatch):
    """`scores("ABC", columns, more)` runs the longest option on twelve questions of one's own -> code, metrics, err."""
    monkeypatch.chdir(tmp_path)

    def score(answers: str, columns: str = COLUMNS, more: str = ""):
        with Path("my.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["question", "A", "B", "C", "answer", "topic", "paper"])
            for number in range(12):
                part = number % 2
                answer = answers[number % len(answers)]
                writer.writerow([f"What {number}?", "the longest", "b", "c", answer, "hb"[part], ("p1", "p2")[part]])
        dataset = f"{{kind: choice, path: my.csv, columns: {{{columns}}}{more}}}"
        spec = f"name: mine{len(columns + more)}\ndataset: {dataset}\nprogram: longest\n"
        Path("my.yaml").write_text(spec, encoding="utf-8")
        code, out, err = medexam("run", "my.yaml", "--json")
        return code, json.loads(out)[0]["metrics"] if code == 0 else None, err

    return score


def test_a_subject_is_no_exam_and_a_penalty_is_declared(scores, medexam) -> None:
    _, plain, _ = scores("ABC")
    assert list(plain["measures"]) == ["accuracy", "unanswered_ratio"]
    assert (plain["exams"], list(plain["by"])) == (None, ["discipline", "option_count"])
    _, shown, _ = medexam("report", "runs")
    assert not [word for word in ("Points", "Exam score", "By exam", "HEAD-QA") if word in shown]
    _, charged, _ = scores("ABC", more=PENALTY)
    assert charged["measures"]["exam_score"]["value"] == pytest.approx((4 - 8 / 3) / 12)
    assert "points" not in charged["measures"]
    _, exams, _ = scores("ABC", f"{COLUMNS}, exam: paper", ", scoring: {penalty: 0.5}")
    assert exams["measures"]["points"]["value"] == (2 * 4 - 8) / 2
    assert list(exams["by"]) == ["discipline", "option_count", "exam"]
    _, each, _ = medexam("report", "runs")
    assert "(right - wrong / 2 or 3) / n" in " ".join(each.split())
    assert medexam("report", "runs", "--html", "page.html")[0] == 0


@pytest.mark.parametrize("penalty", ["0", "1/0", "third", "2"])
def test_a_penalty_that_is_none_is_refused(scores, penalty) -> None:
    code, _, err = scores("ABC", more=f", scoring: {{penalty: {penalty}}}")
    assert (code, "scoring.penalty" in err, len(err.strip().splitlines())) == (2, True, 1), err


@pytest.mark.parametrize("answers", ["A", "B", "AB"])
def test_an_interval_that_resampled_nothing_is_none(scores, answers) -> None:
    _, metrics, _ = scores(answers, more=PENALTY)
    measure = metrics["measures"]["exam_score"]
    assert (measure["interval"] is None) == (len(answers) == 1)
    assert measure["resampled"] == ("clusters" if len(answers) > 1 else "none: every resample has the same result")
