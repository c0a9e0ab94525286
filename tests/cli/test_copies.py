"""Every copy of a run's numbers says what its folder says: JSON, tables, pages, Parquet and MLflow.

The numbers that are expected are computed anew from the predictions and the data set. A folder goes through the states
that a run has: killed with failures, then widened and finished, then narrowed. Each process is killed before it scores,
so that the folder holds the files of an earlier state.
"""

import csv
import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from medexam.datasets import load_exam_set
from medexam.experiments import RunFolder
from medexam.measures import compute_metrics, find_benchmark
from medexam.predictions import Failure, Reason, Status
from medexam.specs import DatasetSpec
from page_blocks import Page
from stored_runs import write_run
from table_cases import write_squad

REFUSED = {"status": Status.FAILED, "failure": Failure(kind="LMTransportError", message="refused")}


@pytest.fixture
def show(medexam, tmp_path, uri, monkeypatch):
    """`show(folder, first)`: what each surface shows of a run, the one called `first` reading the stale folder."""
    monkeypatch.setenv("COLUMNS", "400")

    def call(folder: RunFolder, first: str) -> dict[str, str]:
        ways = {
            "track": ["track", folder.path, "--tracking-uri", uri],
            "json": ["report", folder.path, "--json"],
            "terminal": ["report", folder.path],
            "markdown": ["report", folder.path, "--markdown", tmp_path / "run.md"],
            "html": ["report", folder.path, "--html", tmp_path / "run.html"],
        }
        shown = {}
        for way in sorted(ways, key=lambda way: way != first):
            code, shown[way], said = medexam(*ways[way])
            assert code == 0, said
            assert ("again" in said) is (way == first), (way, said)
        shown["markdown"] = (tmp_path / "run.md").read_text(encoding="utf-8")
        shown["html"] = re.sub(r"<[^>]*>", " ", (tmp_path / "run.html").read_text(encoding="utf-8"))
        return shown

    return call


def check_texts(shown: dict[str, str], values: dict[str, float]) -> None:
    """Each share stands in each text, in percent."""
    for surface in ("terminal", "markdown", "html"):
        tokens = set(re.split(r"[\s\[\]|;/*]+", shown[surface].replace(",", "")))
        missing = {name for name, value in values.items() if f"{100 * value:.1f}" not in tokens}
        assert not missing, f"{surface} does not show {missing}"


def check_documents(shown: dict[str, str], folder: RunFolder, metrics: dict) -> dict[str, str]:
    """The report's JSON and the folder's file hold these metrics."""
    assert json.loads(shown["json"])[0]["metrics"] == metrics
    assert json.loads((folder.path / "metrics.json").read_text()) == metrics
    return shown


def check_mlflow(client, folder: RunFolder, metrics: dict, values: dict[str, float], *, complete: bool) -> None:
    """One run, with these numbers and the counts, once each; its status and files are the folder's."""
    values = values | {name: metrics[name] for name in ("n", "unanswered", "failed", "missing")}
    experiments = [each.experiment_id for each in client.search_experiments()]
    (run,) = client.search_runs(experiments)
    assert {name: run.data.metrics[name] for name in values} == pytest.approx(values)
    assert all(len(client.get_metric_history(run.info.run_id, name)) == 1 for name in values)
    assert (run.info.status == "FINISHED") is complete
    artifacts = Path(run.info.artifact_uri.removeprefix("file://"))
    held = {path.name: path.read_bytes() for path in folder.path.iterdir() if not path.name.startswith(".")}
    assert {path.name: path.read_bytes() for path in artifacts.iterdir()} == held


def _answer(question, gold):
    """Right, wrong or no answer, as the booklet's number has it."""
    if question.number % 5 == 0:
        return {"status": Status.UNANSWERED, "reason": Reason.UNPARSED}
    return {"status": Status.ANSWERED, "answer": gold if question.number % 3 else 1 + gold % 4, "prompt_tokens": 90}


def _cut_off(question, gold):
    """The answer, a failure, or nothing yet."""
    if question.number % 7 == 0:
        return REFUSED
    return None if question.number % 2 else _answer(question, gold)


STATES = [
    ("partial", {"limit": 90}, _cut_off, "track"),
    ("widened", {"limit": 120}, _answer, "json"),
    ("narrowed", {"limit": 60, "disciplines": ["medicine", "nursing"]}, lambda question, gold: None, "html"),
]


def test_the_numbers_of_an_exam_are_the_folders_everywhere(show, client, tmp_path) -> None:
    for state, selection, answer, first in STATES:
        exams = load_exam_set(DatasetSpec(name="headqa_sample", **selection))
        folder = write_run(tmp_path / "run", exams, {"kind": "zero_shot"}, answer, dataset=selection, scored=False)
        scoring = find_benchmark(DatasetSpec(name="headqa_sample")).scoring
        computed = compute_metrics(exams.questions, exams.golds, folder.read_predictions(), scoring)
        metrics = computed.model_dump(mode="json")
        assert (computed.failed > 0) == (computed.missing > 0) == (state == "partial")
        shown = check_documents(show(folder, first), folder, metrics)
        shares = ("accuracy", "exam_score", "unanswered_ratio")
        values = {name: metrics["measures"][name]["value"] for name in shares}
        disciplines = metrics["by"]["discipline"].items()
        values |= {f"accuracy.{group}": found["measures"]["accuracy"]["value"] for group, found in disciplines}
        low, high = metrics["measures"]["accuracy"]["interval"]
        check_texts(shown, values | {"low": low, "high": high})
        check_mlflow(client, folder, metrics, values, complete=state != "partial")
        rows = pq.read_table(folder.path / "predictions.parquet").to_pylist()
        scored = [row for row in rows if row["status"] != "failed"]
        assert (len(scored), len(rows) - len(scored)) == (metrics["n"], metrics["failed"])
        for group, found in metrics["by"]["discipline"].items():
            right = sum(row["answer"] == row["gold"] for row in scored if row["discipline"] == group)
            assert right == found["right"]


def _quote(task, gold):
    """The whole answer, its first word, or nothing that stands in the text."""
    number = int(task.key.rsplit("-", 1)[-1])
    if number % 5 == 4:
        return {"status": Status.UNANSWERED, "reason": Reason.NOT_IN_CONTEXT, "reply": "So be it."}
    text = gold.answers[0] if number % 2 else gold.answers[0].split()[0]
    begins = task.context.find(text)
    span = {"text": text, "span": (begins, begins + len(text)), "alignment": "literal"}
    return {**span, "status": Status.ANSWERED, "reply": text}


def _quote_cut_off(task, gold):
    number = int(task.key.rsplit("-", 1)[-1])
    if number % 7 == 0:
        return REFUSED
    return None if number % 3 else _quote(task, gold)


TASK_STATES = [
    ("partial", 25, _quote_cut_off, "terminal"),
    ("widened", 30, _quote, "track"),
]


def test_the_numbers_of_answers_in_words_are_the_folders_everywhere(show, client, tmp_path) -> None:
    text = "Case {}: it was hot and dry, for heat expands."
    rows = [(f"es-{number}", text.format(number), "Why?", "heat expands") for number in range(40)]
    path = str(write_squad(tmp_path / "es.jsonl", rows))
    for state, limit, answer, first in TASK_STATES:
        dataset = {"kind": "spans", "name": "mine", "language": "es", "path": path, "limit": limit}
        spec = DatasetSpec.model_validate(dataset)
        tasks = find_benchmark(spec).load(spec)
        program = {"kind": "quote"}
        folder = write_run(tmp_path / "run", tasks, program, answer, dataset=dataset, scored=False)
        scores = find_benchmark(spec).score(tasks, folder.read_predictions())
        metrics = scores.metrics.model_dump(mode="json")
        shown = check_documents(show(folder, first), folder, metrics)
        values = {name: measure["value"] for name, measure in metrics["measures"].items()}
        check_texts(shown, values)
        check_mlflow(client, folder, metrics, values, complete=state != "partial")
        rows = pq.read_table(folder.path / "predictions.parquet").to_pylist()
        for name, measure in metrics["measures"].items():
            found = [row[f"score_{name}"] for row in rows if row[f"score_{name}"] is not None]
            assert (len(found), sum(found) / len(found)) == pytest.approx((measure["n"], measure["value"]))


FIGURE = re.compile(r"^\**(-?[\d.]+)\**(?: \[(-?[\d.]+), (-?[\d.]+)\])?\**$")
SHOWN = {"Accuracy": "accuracy", "Exam score": "exam_score", "Points": "points"}
"""Columns of a table of runs -> the measures that they show."""


def parse_figure(text: str) -> tuple[float | None, ...]:
    """A number of a table and the ends of its interval."""
    match = FIGURE.match(" ".join(text.split()))
    assert match is not None, text
    return tuple(None if part is None else float(part) for part in match.groups())


def as_shown(measure: dict, interval: bool = True) -> tuple[float | None, ...]:
    """The same of a measure in `--json`."""
    scale = 1 if measure["unit"] == "points" else 100
    ends = measure["interval"] if interval and measure["interval"] else (None, None)
    return tuple(None if end is None else round(scale * end, 1) + 0.0 for end in (measure["value"], *ends))


def markdown_tables(text: str) -> list[list[list[str]]]:
    """The rows of each table, its headers first."""
    blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("| ")]
    return [[[cell.strip() for cell in line[1:-1].split(" | ")] for line in (each[0], *each[2:])] for each in blocks]


def latex_tables(text: str) -> list[list[list[str]]]:
    """The same of LaTeX."""
    tables = []
    for body in re.findall(r"\\toprule\n(.*?)\\bottomrule", text, re.DOTALL):
        plain = re.sub(r"\{\\scriptsize (.*?)\}|\\textbf\{(.*?)\}", r"\1\2", body.replace("$-$", "-"))
        plain = plain.replace("\\_", "_").replace("\\midrule\n", "").replace("\\addlinespace\n", "")
        tables.append([line.removesuffix(" \\\\").split(" & ") for line in plain.strip().splitlines()])
    return tables


def check_tables(tables: list[list[list[str]]], documents: dict[str, dict], *, matrices: bool) -> None:
    """The table of runs shows each run's measures; with `matrices`, others show its accuracy by each facet."""
    overview = next(
        each for each in tables if each[0][:3] == ["Program", "Model", "n"] or each[0][:2] == ["Program", "n"]
    )
    headers, *rows = overview
    assert {row[0] for row in rows} == {*documents}
    for row in rows:
        measures = documents[row[0]]["metrics"]["measures"]
        for header, name in SHOWN.items():
            found = parse_figure(row[headers.index(header)])
            assert found == as_shown(measures[name], interval=name != "points"), (row[0], name)
    for facet, header in (("discipline", "Discipline"), ("year", "Year"), ("language", "Language")) if matrices else ():
        headers, *rows = next(each for each in tables if each[0][0] == header and documents.keys() <= {*each[0]})
        for row in rows:
            for program, document in documents.items():
                measure = document["metrics"]["by"][facet][row[0]]["measures"]["accuracy"]
                assert parse_figure(row[headers.index(program)]) == as_shown(measure), (program, facet, row[0])


def check_csv(path: Path, documents: dict[str, dict]) -> None:
    """A row a run and group has every measure in a column of its own, and the ends of its interval in two more."""
    with path.open(newline="") as file:
        rows = {(row["program"], row["facet"], row["group"]): row for row in csv.DictReader(file)}
    for program, document in documents.items():
        metrics = document["metrics"]
        parts = {("", ""): metrics} | {
            (facet, group): scores for facet, groups in metrics["by"].items() for group, scores in groups.items()
        }
        for (facet, group), scores in parts.items():
            row = rows.pop((program, facet, group))
            assert [int(row[name]) for name in ("n", "right", "wrong")] == [
                scores["n"],
                scores["right"],
                scores["wrong"],
            ]
            for name, measure in scores["measures"].items():
                low, high = measure["interval"] or (None, None)
                for column, value in ((name, measure["value"]), (f"{name}_low", low), (f"{name}_high", high)):
                    found = row.get(column) or None
                    assert (found and float(found)) == (value and pytest.approx(value, rel=1e-5)), (program, column)
    assert not rows


def test_six_runs_have_equal_figures_in_every_form(run, medexam, client, uri, spec, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    kinds = [{"kind": "zero_shot"}, {"kind": "longest"}, *({"kind": "blind", "option": each} for each in (1, 2, 3, 4))]
    run(spec("{Answer: 2}", program=None, matrix={"program": kinds}), "--limit", 90)
    files = {name: tmp_path / f"runs.{name}" for name in ("md", "tex", "csv", "html")}
    options = {"md": "--markdown", "tex": "--latex", "csv": "--csv", "html": "--html"}
    flags = [part for name, path in files.items() for part in (options[name], path)]
    code, out, err = medexam("report", "runs", "--by", "language", *flags, "--json")
    assert code == 0, err
    documents = {document["program"]: document for document in json.loads(out)}
    assert len(documents) == 6
    check_tables(markdown_tables(files["md"].read_text()), documents, matrices=False)
    check_tables(latex_tables(files["tex"].read_text()), documents, matrices=True)
    check_tables([*Page(files["html"].read_text()).tables.values()], documents, matrices=True)
    check_csv(files["csv"], documents)
    terminal = medexam("report", "runs")[1]
    for program, document in documents.items():
        (line,) = (line for line in terminal.splitlines() if re.match(rf"{program} +(?:- +)?(?:scripted +)?\d", line))
        value, low, high = as_shown(document["metrics"]["measures"]["accuracy"])
        assert f" {value} [{low}, {high}] " in line
    assert medexam("track", "runs", "--tracking-uri", uri)[0] == 0
    copies = client.search_runs([each.experiment_id for each in client.search_experiments()])
    for copy in copies:
        metrics = documents[copy.data.params["program"]]["metrics"]
        expected = {name: measure["value"] for name, measure in metrics["measures"].items()}
        expected |= {
            f"{name}_low": each["interval"][0] for name, each in metrics["measures"].items() if each["interval"]
        }
        for facet in ("discipline", "year"):
            groups = metrics["by"][facet].items()
            expected |= {f"accuracy.{group}": scores["measures"]["accuracy"]["value"] for group, scores in groups}
        assert {name: copy.data.metrics[name] for name in expected} == pytest.approx(expected)
    assert len(copies) == 6
