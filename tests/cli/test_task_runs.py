"""Runs that answer in words, from the spec to the report, with scripted replies."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from task_data import write_casimedicos, write_cliniqlink, write_squad

HOSTILE = "</pre></script><script>alert(1)</script><img src=x onerror=alert(2)>"
EXTRACT = {"kind": "extract_explanation"}
REPLIES = {
    "man of 74": "He has no fever.",
    "woman of 30": "it WAS hot, heat explains",
    "boy of 9": HOSTILE,
    "*": "So be it.",
}
"""By the case; the last two quote nothing."""


@pytest.fixture
def spec(tmp_path, runs_dir):
    """`spec(dataset={...})`: writes a spec of extraction over the small CasiMedicos, and its replies."""
    data = write_casimedicos(tmp_path / "casimedicos", "en", "es")

    def write(replies=None, **changes) -> Path:
        (tmp_path / "replies.yaml").write_text(yaml.safe_dump(REPLIES if replies is None else replies))
        document = {
            "name": "spans",
            "description": "Spans by hand.",
            "dataset": {
                "name": "casimedicos_spans",
                "path": str(data),
                "language": "es",
                "split": "test",
                "variants": ["CQ#E", "CQP#E"],
            },
            "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml")},
            "program": EXTRACT,
            **changes,
        }
        (path := tmp_path / "spec.yaml").write_text(yaml.safe_dump(document))
        return path

    return write


@pytest.fixture
def run(medexam, spec):
    """`run(...)`: the documents of `medexam run --json` over what `spec` writes."""

    def call(*options, code=0, **changes) -> list[dict]:
        done, out, err = medexam("run", spec(**changes), "--json", *options)
        assert done == code, err
        return json.loads(out)

    return call


def _exam(spec) -> Path:
    return spec(
        name="exam",
        dataset={"name": "casimedicos", "path": str(spec().parent / "casimedicos"), "language": "es"},
        program={"kind": "longest"},
    )


def test_a_run_leaves_a_whole_folder(run) -> None:
    (document,) = run()
    metrics, folder = document["metrics"], Path(document["run_dir"])
    assert (metrics["kind"], metrics["selected"], metrics["n"], metrics["unanswered"]) == ("tasks", 6, 6, 2)
    assert metrics["counts"] == {name: {"literal": 1, "aligned": 1, "not_in_context": 1} for name in ("CQ#E", "CQP#E")}
    components = metrics["measures"]["component_f1"]
    assert (components["n"], components["value"]) == (4, pytest.approx((1 + 10 / 11) / 2)), "the boy's case has none"
    assert {path.name for path in folder.iterdir()} >= {
        "spec.json",
        "environment.json",
        "predictions.jsonl",
        "metrics.json",
        "report.md",
        "predictions.parquet",
    }
    assert json.loads((folder / "metrics.json").read_text()) == metrics
    report = (folder / "report.md").read_text()
    assert report.startswith("# spans: ")
    assert "Complete: 6 questions scored." in report
    assert "F1 and exact match are not scored" in report
    assert "| Components: F1 |" in report
    assert "2 of 6: not_in_context 2." in report
    lines = [json.loads(line) for line in (folder / "predictions.jsonl").read_text().splitlines()]
    assert len(lines) == 6
    assert not any("gold" in line or "score" in line for line in lines)


def test_every_answer_stands_in_the_table_with_its_scores(run) -> None:
    (document,) = run()
    rows = {row["question"]: row for row in pq.read_table(Path(document["run_dir"], "predictions.parquet")).to_pylist()}
    row = rows["casimedicos/test/1/CQ#E"]
    assert (row["text"], row["start"], row["end"]) == ("It was hot. Heat explains", 0, 25)
    assert (row["group"], row["language"], row["alignment"], row["gold"]) == ("CQ#E", "es", "aligned", [])
    assert row["score_component_precision"] == 1.0
    assert row["score_component_recall"] == pytest.approx(5 / 6)
    row = rows["casimedicos/test/2/CQP#E"]
    assert (row["status"], row["reason"], row["text"], row["start"]) == ("unanswered", "not_in_context", None, None)
    assert (row["reply"], row["score_component_f1"], row["score_quoted"]) == (HOSTILE, None, 0.0)
    mean = sum(row["score_quoted"] for row in rows.values()) / 6
    assert document["metrics"]["measures"]["quoted"]["value"] == pytest.approx(mean)


def test_nothing_is_asked_twice(run, failing) -> None:
    (first,) = run()
    answers = Path(first["run_dir"], "predictions.jsonl")
    before = answers.read_bytes()
    failing(lambda _: True)
    (again,) = run()
    assert (again["metrics"], again["failures"]) == (first["metrics"], [])
    assert answers.read_bytes() == before


def test_what_failed_is_asked_again(run, medexam, failing) -> None:
    failing(lambda prompt: "boy of 9" in prompt)
    (first,) = run(code=3)
    assert (first["metrics"]["n"], first["metrics"]["failed"]) == (4, 2)
    quoted = first["metrics"]["measures"]["quoted"]
    assert (quoted["value"], quoted["n"]) == (1.0, 4)
    report = Path(first["run_dir"], "report.md").read_text()
    assert "Incomplete: 4 of 6 questions scored, 2 failed" in report
    failing(lambda _: False)
    code, out, _ = medexam("run", "--resume", first["run_dir"], "--json")
    (resumed,) = json.loads(out)
    assert (code, resumed["run_id"], resumed["metrics"]["n"]) == (0, first["run_id"], 6)


def test_a_limit_is_widened_without_asking_again(run, medexam, spec) -> None:
    (first,) = run("--limit", 2)
    assert first["metrics"]["n"] == 2
    code, out, _ = medexam("plan", spec(), "--limit", 5, "--json")
    assert (code, json.loads(out)[0]["owed"]) == (0, 3)


def test_plan_shows_a_prompt_and_counts_calls(medexam, spec) -> None:
    code, out, _ = medexam("plan", spec(program={**EXTRACT, "answer_format": "guided"}), "--json")
    (cell,) = json.loads(out)
    assert (code, cell["questions"], cell["calls"]) == (0, 6, 12)
    assert "[1] Asthma wheezes." in cell["prompt"][1]["content"]


def test_guided_extraction_quotes_whole_sentences(run) -> None:
    (document,) = run(program={**EXTRACT, "answer_format": "guided"}, replies={"*": "[1 - 2"})
    assert (document["metrics"]["unanswered"], document["metrics"]["measures"]["literal"]["value"]) == (0, 1.0)


def test_reports_agree_with_the_run(run, medexam, tmp_path) -> None:
    (document,) = run()
    code, out, err = medexam("report", document["run_dir"], "--json")
    assert (code, err) == (0, "")
    (again,) = json.loads(out)
    assert again["metrics"] == document["metrics"], "to the last digit"
    code, out, err = medexam("report", document["run_dir"], "--markdown", "report.md", "--html", "page.html")
    assert code == 0, err
    assert "wrote page.html (6 questions" in err
    assert (tmp_path / "report.md").read_text() == Path(document["run_dir"], "report.md").read_text()
    for words in ("Components: F1", "By group", "CQP#E", "Warning: "):
        assert words in out


def test_several_runs_stand_side_by_side(run, medexam, tmp_path) -> None:
    matrix = {"program": [EXTRACT, {**EXTRACT, "answer_format": "guided"}]}
    documents = run(matrix=matrix)
    assert len(documents) == 2
    code, out, _ = medexam("report", "runs", "--markdown", "both.md", "--html", "both.html", "--json")
    assert (code, len(json.loads(out))) == (0, 2)
    text = (tmp_path / "both.md").read_text()
    assert text.splitlines()[2] == "| Measure | extract_explanation | extract_explanation-guided |"
    assert text.count(": By group\n") == 2
    page = _Page((tmp_path / "both.html").read_text())
    assert "block-part-0" in {attributes.get("id") for _, attributes in page.elements}


def test_weights_rank_runs_wherever_they_are_reported(run, medexam, tmp_path) -> None:
    matrix = {"program": [EXTRACT, {**EXTRACT, "answer_format": "guided"}]}
    documents = run(matrix=matrix)
    weights = ("--weight", "CQ#E=3", "--weight", "CQP#E=1")
    files = ("--markdown", "both.md", "--html", "both.html")
    code, out, _ = medexam("report", "runs", *weights, *files)
    assert (code, "Board: F1" in out) == (0, True)
    for name in ("both.md", "both.html"):
        assert "Board: F1" in (tmp_path / name).read_text()
    ranked = json.loads(medexam("report", "runs", *weights, "--json")[1])
    assert [list(each["board"]) for each in ranked] == [["f1"], ["f1"]]
    assert "board" not in json.loads(medexam("report", "runs", "--json")[1])[0]
    assert "gives CQ#E twice" in medexam("report", "runs", *weights, *weights)[2]

    run("--limit", 2, matrix=matrix, dataset={**documents_dataset(documents), "language": "en"})
    code, out, err = medexam("report", "runs", *weights)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "--weight ranks runs of the same questions" in err
    assert "medexam compare" in err


def documents_dataset(documents) -> dict:
    """The dataset part of the spec that the first of these runs was made by."""
    return json.loads(Path(documents[0]["run_dir"], "spec.json").read_text())["cell"]["dataset"]


class _Page(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data) -> None:
        self.text += data


def test_the_page_takes_no_reply_and_no_question_for_markup(run, medexam, tmp_path) -> None:
    squad = write_squad(tmp_path / "es.jsonl", [(f"<b>{n}", f"It {HOSTILE} was hot.", HOSTILE, "hot") for n in "12"])
    dataset = {"name": "casimedicos_spans", "path": str(squad), "language": "es"}
    (document,) = run(dataset=dataset, replies={"*": f"It {HOSTILE}"})
    assert document["metrics"]["measures"]["quoted"]["value"] == 1.0
    assert medexam("report", document["run_dir"], "--html", "page.html")[0] == 0
    page = _Page((tmp_path / "page.html").read_text())
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"img", "b", "link", "iframe"}
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert HOSTILE not in page.text
    blocks = {each["id"]: each for tag, each in page.elements if tag == "script" and "id" in each}
    assert set(blocks) == {"block-index", "block-stems", "block-part-0"}


def test_the_page_may_run_and_load_nothing(run, medexam, tmp_path) -> None:
    (document,) = run()
    medexam("report", document["run_dir"], "--html", "page.html")
    page = _Page((tmp_path / "page.html").read_text())
    (policy,) = (each["content"] for tag, each in page.elements if each.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.strip().partition(" ")[::2] for rule in policy.split(";"))
    assert rules.pop("style-src").startswith("'sha256-")
    assert rules.pop("script-src").startswith("'sha256-")
    assert rules == {
        "default-src": "'none'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert not any(value.startswith("http") for _, each in page.elements for value in each.values() if value)


@pytest.mark.parametrize("options", [["--plots", "plots"], ["--layout", "paper"]])
def test_what_only_exams_have_is_refused_in_one_line(run, medexam, options) -> None:
    (document,) = run()
    code, out, err = medexam("report", document["run_dir"], *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "or use --html or --markdown" in err


def test_exams_and_answers_in_words_share_a_terminal_and_no_file(run, medexam, spec) -> None:
    run()
    assert medexam("run", _exam(spec))[0] == 0
    code, out, err = medexam("report", "runs")
    assert (code, err) == (0, "")
    assert "Exam score" in out
    assert "Components: F1" in out
    for option in ("--markdown", "--html"):
        code, out, err = medexam("report", "runs", option, "report")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "report each of them separately" in err


def test_a_column_splits_answers_in_words_by_the_measure_that_they_are_known_by(run, medexam) -> None:
    (document,) = run()
    breakdown, _ = json.loads(medexam("report", "runs", "--by", "group", "--by", "length", "--json")[1])[0]["by"]
    metrics, measure = document["metrics"], breakdown["measure"]
    assert measure == next(iter(metrics["measures"]))
    scores = {group: measures[measure]["value"] for group, measures in metrics["by_group"].items()}
    assert {group["value"]: group["score"] for group in breakdown["groups"]} == pytest.approx(scores)


@pytest.mark.model
def test_two_benchmarks_share_no_page_but_a_terminal(run, medexam, tmp_path) -> None:
    pytest.importorskip("sentence_transformers")
    data = write_cliniqlink(tmp_path / "cliniqlink")
    run()
    (document,) = run(
        name="formats",
        dataset={"name": "cliniqlink", "path": str(data)},
        program={"kind": "by_format"},
        replies={"*": "True"},
    )
    assert document["metrics"]["by_group"]["true_false"]["published"]["value"] == 0.5
    for option in ("--html", "--markdown"):
        code, out, err = medexam("report", "runs", option, "x")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "report each of them separately" in err
    code, out, _ = medexam("report", "runs")
    assert code == 0
    assert "casimedicos_spans" in out
    assert "cliniqlink" in out
    assert medexam("report", document["run_dir"], "--html", "page.html", "--markdown", "formats.md")[0] == 0
    assert "checking formats only" in (tmp_path / "page.html").read_text()


@pytest.mark.usefixtures("tracked")
def test_mlflow_holds_the_metrics_once(run, medexam, client) -> None:
    (document,) = run()

    def stored():
        return client.search_runs([each.experiment_id for each in client.search_experiments()])

    before = stored()
    (child,) = (each for each in before if each.data.tags.get("medexam.kind") == "run")
    metrics, measures = child.data.metrics, document["metrics"]["measures"]
    assert metrics["component_f1"] == measures["component_f1"]["value"]
    interval = measures["component_f1"]["interval"]
    ends = [metrics.get("component_f1_low"), metrics.get("component_f1_high")]
    assert ends == (interval or [None, None])
    assert metrics["quoted.CQ_E"] == document["metrics"]["by_group"]["CQ#E"]["quoted"]["value"]
    assert metrics["quoted.without questions that stand in train"] == 0.5
    assert (metrics["n"], metrics["unanswered"], metrics["failed"]) == (6, 2, 0)
    assert child.data.params["program.kind"] == "extract_explanation"
    assert "Components: F1" in child.data.tags["mlflow.note.content"]
    code, _, err = medexam("track", document["run_dir"])
    assert code == 0, err
    assert {each.info.run_id for each in stored()} == {each.info.run_id for each in before}


def test_people_can_judge_the_answers(run, medexam, tmp_path) -> None:
    runs = [each["run_id"] for each in run(matrix={"program": [EXTRACT, {**EXTRACT, "answer_format": "guided"}]})]
    code, out, err = medexam("audit", "export", *runs, "--out", "audit", "--per-group", "2")
    assert (code, err) == (0, "")
    assert "answers of 2 runs" in out
    sheet = (tmp_path / "audit" / "rater_1.csv").read_text(encoding="utf-8-sig")
    assert "He has no fever" in sheet
    assert not re.search(r"extract_explanation|component_f1", sheet), "the sheet tells neither run nor score"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"program": {"kind": "zero_shot"}}, "program zero_shot does not answer casimedicos_spans"),
        ({"program": {**EXTRACT, "prompt": "nowhere.yaml"}}, "nowhere.yaml"),
        ({"dataset": {"name": "casimedicos_spans", "path": "nowhere"}}, "nowhere does not exist"),
        ({"dataset": {"name": "casimedicos_spans", "path": "."}}, "no file for language en"),
        ({"dataset": {"name": "cliniqlink", "path": "replies.yaml"}, "program": {"kind": "by_format"}}, "TF.json"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(medexam, spec, changes, said) -> None:
    code, out, err = medexam("run", spec(**changes))
    assert (code, out) == (2, "")
    last = err.strip().splitlines()[-1]
    assert last.startswith("medexam: ")
    assert said in last
    assert "Traceback" not in err


def test_data_that_are_gone_are_named_by_report(run, medexam, tmp_path) -> None:
    (document,) = run()
    shutil.rmtree(tmp_path / "casimedicos")
    code, out, err = medexam("report", document["run_dir"], "--html", "page.html")
    warning, wrote = err.splitlines()
    assert (code, "Components: F1" in out) == (0, True)
    assert "shown as it was scored" in warning
    assert wrote.startswith("wrote page.html (6 questions")
