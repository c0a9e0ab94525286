"""Every copy of a run's numbers says what its folder says: each number of `metrics.json`, on every surface.

The numbers that are expected are computed anew from the predictions and the data set. A folder goes through the states
that a run has: whole, then widened and killed with failures, then finished, then narrowed. Each process but the first
is killed before it scores, so that the folder holds the files of an earlier state.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from medexam.benchmarks import find_benchmark
from medexam.datasets import load_exam_set, load_task_set
from medexam.experiments import RunFolder
from medexam.experiments.store.run_folder import PARQUET
from medexam.metrics import compute_metrics
from medexam.predictions import Failure, Reason, Status
from medexam.specs import DatasetSpec
from medexam.tables import decimal, percent
from stored_runs import write_run
from task_data import write_squad

Number = tuple[tuple[str, ...], float]
"""The path to a number in `metrics.json`, and the number."""
TEXTS = ("terminal", "markdown", "html")
COUNTS = {"selected", "n", "right", "wrong", "unanswered", "failed", "missing", "exams"}
POINTS = {"points", "chance_points", "points_interval", "headqa_v1_accuracy", "headqa_v1_points"}
HIDDEN = {
    # A breakdown tells its counts, its accuracy with the chance of it, its exam score and its points.
    "terminal": r"by_.*\.(selected|exams|chance_exam_score|chance_points|unanswered_ratio|headqa_v1_\w+)|"
    r"(chance_exam_score|chance_points|(points|unanswered_ratio)_interval\.\d|exams|headqa_v1_\w+|"
    r"(prompt|completion)_tokens|latency_\w+|missing|failed|selected|right|wrong|unanswered)",
    "markdown": r"by_.*\.(selected|exams|chance_exam_score|chance_points|unanswered_ratio)|exams",
    "html": r"by_.*\.(selected|exams|chance_exam_score|chance_points|unanswered_ratio)|"
    r"(right|wrong|unanswered|exams|chance_exam_score|chance_points|(points|unanswered_ratio)_interval\.\d|"
    r"headqa_v1_\w+|latency_\w+)",
    # MLflow has what its charts can show: of each discipline, year and number of options the accuracy. All else is in
    # its artifact `metrics.json`.
    "mlflow": r"exams|chance_(exam_score|points)|headqa_v1_\w+|by_exam\..*|"
    r"by_(discipline|option_count|year)\.[^.]*\.(?!accuracy$).*|(counts|outcomes)\..*|.*\.n",
    # A row a question: what was not asked, the intervals, chance and the published rounding are in no row.
    "parquet": r".*(selected|missing|interval\.\d|chance_\w+|headqa_v1_\w+|exams|points|latency_\w+)",
}
"""Surface -> the numbers that it does not show, by design."""
TASKS_HIDE = r"selected|latency_\w+|by_.*\.(?!f1\.)\w+\.interval\.\d"
"""What tables of benchmarks that are answered in words leave out: `n`, failed and missing add up to `selected`, and
only the first measure of a group has an interval."""


def walk(tree: object, path: tuple[str, ...] = ()) -> Iterator[Number]:
    """Every number of a JSON document with the path to it."""
    if isinstance(tree, dict | list):
        pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
        for key, value in pairs:
            yield from walk(value, (*path, str(key)))
    elif isinstance(tree, int | float) and not isinstance(tree, bool):
        yield path, float(tree)


def is_hidden(surface: str, path: tuple[str, ...]) -> bool:
    return re.fullmatch(HIDDEN[surface], ".".join(path)) is not None


def written(path: tuple[str, ...], value: float) -> str:
    """A number as tables write it: a count whole, a score in percent, points and seconds as they are."""
    names = set(path)
    if path[-1] in COUNTS or path[0] in {"counts", "outcomes"}:
        return str(int(value))
    if path[-1].endswith("_tokens"):
        return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
    if path[-1].startswith("latency_"):
        return f"{value:.2f}"
    return decimal(value) if names & POINTS else percent(value)


def check_texts(metrics: dict, texts: dict[str, str], hidden: str = "") -> None:
    """Each number stands in each text, or is hidden there by design, or in all of them by `hidden`."""
    for surface, text in texts.items():
        tokens = set(re.split(r"[\s\[\]|;/*]+", text.replace(",", "")))
        missing = {
            ".".join(path): said
            for path, value in walk(metrics)
            if not (is_hidden(surface, path) or re.fullmatch(hidden, ".".join(path)))
            and (said := written(path, value)) not in tokens
        }
        assert not missing, f"{surface} does not show {missing}"


def named(path: tuple[str, ...]) -> tuple[str, int]:
    """The name and step under which MLflow holds a number."""
    parts, ending = [*path], ""
    if parts[-1] in {"0", "1"} and parts[-2].endswith("interval"):
        ending = "_low" if parts.pop() == "0" else "_high"
        parts[-1] = parts[-1].removesuffix("interval").removesuffix("_")
    if parts[-1] in {"value", ""}:
        parts.pop()
    if parts[0] == "measures":
        return parts[1] + ending, 0
    if parts[0] == "by_option_count":
        return f"{parts[2]}.options_{parts[1]}", 0
    if parts[0].startswith("by_"):
        return re.sub(r"[^\w./ -]", "_", f"{parts[2]}{ending}.{parts[1]}"), 0
    return ".".join(parts) + ending, 0


def check_mlflow(metrics: dict, folder: RunFolder, client, *, complete: bool) -> None:
    """One run, with each number that is not hidden and no other, once; its status and files are the folder's."""
    runs = client.search_runs(
        [each.experiment_id for each in client.search_experiments()], f"tags.`medexam.run_id` = '{folder.name}'"
    )
    (run,) = runs
    expected = {named(path): value for path, value in walk(metrics) if not is_hidden("mlflow", path)}
    history = [
        ((point.key, point.step), point.value)
        for name in run.data.metrics
        for point in client.get_metric_history(run.info.run_id, name)
    ]
    assert len(history) == len(dict(history))
    assert dict(history) == expected
    assert run.data.tags["medexam.status"] == ("complete" if complete else "incomplete")
    assert (run.info.status == "FINISHED") is complete
    (given,) = run.inputs.dataset_inputs
    assert json.loads(given.dataset.profile)["num_rows"] == metrics["selected"]
    artifacts = Path(run.info.artifact_uri.removeprefix("file://"))
    held = {path.name: path.read_bytes() for path in folder.path.iterdir() if not path.name.startswith(".")}
    assert {path.name: path.read_bytes() for path in artifacts.iterdir()} == held


def check_parquet(metrics: dict, folder: RunFolder) -> None:
    """The rows add up to each number that is not hidden."""
    rows = pq.read_table(folder.path / PARQUET).to_pylist()
    groups: dict[str, list[dict]] = defaultdict(list)
    for row in rows:
        groups[""].append(row)
        for name, column in (("exam", "exam"), ("year", "year"), ("discipline", "discipline")):
            groups[f"by_{name}.{row[column]}"].append(row)
        groups[f"by_option_count.{row['option_count']}"].append(row)
    for path, value in walk(metrics):
        if not is_hidden("parquet", path):
            group, name = ".".join(path[:-1]), path[-1]
            assert _add_up(name, groups[group]) == pytest.approx(value), f"Parquet tells another {'.'.join(path)}"


def _add_up(name: str, rows: list[dict]) -> float:
    scored = [row for row in rows if row["status"] != "failed"]
    if name.endswith("_tokens"):
        return sum(row[name] for row in scored)
    right = sum(row["answer"] == row["gold"] for row in scored)
    unanswered = sum(row["answer"] is None for row in scored)
    wrong = len(scored) - right - unanswered
    counts = {"n": len(scored), "right": right, "wrong": wrong, "unanswered": unanswered}
    counts["failed"] = len(rows) - len(scored)
    if name in counts:
        return counts[name]
    shares = {"accuracy": right, "unanswered_ratio": unanswered, "exam_score": right - wrong / 3}
    return shares[name] / len(scored)


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
        page = (tmp_path / "run.html").read_text(encoding="utf-8")
        shown["html"] = re.sub(r"<[^>]*>", " ", page)
        return shown

    return call


def _answer(question, gold):
    """Right, wrong or no answer, as the booklet's number has it."""
    if question.number % 5 == 0:
        told = {"status": Status.UNANSWERED, "reason": Reason.UNPARSED}
    else:
        told = {"status": Status.ANSWERED, "answer": gold if question.number % 3 else 1 + gold % 4}
    return {**told, "prompt_tokens": 90 + question.number, "completion_tokens": 5, "latency_s": question.number / 100}


def _cut_off(question, gold):
    """The answer, a failure, or nothing yet."""
    if question.number % 7 == 0:
        return {"status": Status.FAILED, "failure": Failure(kind="LMTransportError", message="refused")}
    return None if question.number % 2 else _answer(question, gold)


STATES = [
    ("whole", {"limit": 40}, _answer, "track"),
    ("partial", {"limit": 90}, _cut_off, "track"),
    ("widened", {"limit": 120}, _answer, "json"),
    ("narrowed", {"limit": 60, "disciplines": ["medicine", "nursing"]}, lambda question, gold: None, "html"),
]


def test_every_number_of_an_exam_is_the_folders_everywhere(show, client, tmp_path) -> None:
    for state, selection, answer, first in STATES:
        exams = load_exam_set(DatasetSpec(name="headqa_sample", **selection))
        folder = write_run(tmp_path / "run", exams, {"kind": "zero_shot"}, answer, dataset=selection, scored=False)
        found = compute_metrics(exams.questions, exams.golds, folder.read_predictions())
        metrics = found.model_dump(mode="json")
        assert found.complete == (state != "partial")
        assert (found.failed > 0) == (found.missing > 0) == (state == "partial")
        shown = show(folder, first)
        assert json.loads(shown["json"])[0]["metrics"] == metrics
        assert folder.read_metrics() == metrics
        check_texts(metrics, {name: shown[name] for name in TEXTS})
        check_mlflow(metrics, folder, client, complete=found.complete)
        check_parquet(metrics, folder)


def _quote(task, gold):
    """The whole answer, its first word, or nothing that stands in the text."""
    number = int(task.key.rsplit("-", 1)[-1])
    told = {"prompt_tokens": 90 + number, "completion_tokens": 5, "latency_s": number / 100}
    if number % 5 == 4:
        return {**told, "status": Status.UNANSWERED, "reason": Reason.NOT_IN_CONTEXT, "reply": "So be it."}
    text = gold.answers[0] if number % 2 else gold.answers[0].split()[0]
    begins = task.context.find(text)
    span = {"text": text, "span": (begins, begins + len(text)), "alignment": "literal"}
    return {**told, **span, "status": Status.ANSWERED, "reply": text}


def _quote_cut_off(task, gold):
    number = int(task.key.rsplit("-", 1)[-1])
    if number % 7 == 0:
        return {"status": Status.FAILED, "failure": Failure(kind="LMTransportError", message="refused")}
    return None if number % 3 else _quote(task, gold)


TASK_STATES = [
    ("whole", 10, _quote, "track"),
    ("partial", 25, _quote_cut_off, "terminal"),
    ("widened", 30, _quote, "track"),
    ("narrowed", 6, lambda task, gold: None, "markdown"),
]


def test_every_number_of_a_task_benchmark_is_the_folders_everywhere(show, client, tmp_path) -> None:
    rows = [
        (f"es-{number}", f"Case {number}: it was hot and dry, for heat expands.", "Why?", "heat expands")
        for number in range(40)
    ]
    path = str(write_squad(tmp_path / "es.jsonl", rows))
    for state, limit, answer, first in TASK_STATES:
        dataset = {"name": "casimedicos_spans", "language": "es", "path": path, "limit": limit}
        tasks = load_task_set(DatasetSpec.model_validate(dataset))
        program = {"kind": "extract_explanation"}
        folder = write_run(tmp_path / "run", tasks, program, answer, dataset=dataset, scored=False)
        scores = find_benchmark(DatasetSpec(name=tasks.name)).score(tasks, folder.read_predictions())
        metrics = scores.metrics.model_dump(mode="json")
        assert scores.metrics.complete == (state != "partial")
        shown = show(folder, first)
        assert json.loads(shown["json"])[0]["metrics"] == metrics
        assert folder.read_metrics() == metrics
        check_texts(metrics, {name: shown[name] for name in TEXTS}, TASKS_HIDE)
        check_mlflow(metrics, folder, client, complete=scores.metrics.complete)
        check_task_parquet(metrics, folder)


def check_task_parquet(metrics: dict, folder: RunFolder) -> None:
    """The rows add up to the counts, and their scores to the measures that are means over tasks."""
    rows = pq.read_table(folder.path / PARQUET).to_pylist()
    status = Counter(row["status"] for row in rows)
    assert status["failed"] == metrics["failed"]
    assert (len(rows) - status["failed"], status["unanswered"]) == (metrics["n"], metrics["unanswered"])
    by_group = [(group, found) for group, found in metrics["by_group"].items()]
    for group, measures in [(None, metrics["measures"]), *by_group]:
        for name, measure in measures.items():
            mine = [row[f"score_{name}"] for row in rows if group in (None, row["group"])]
            scored = [score for score in mine if score is not None]
            assert (len(scored), sum(scored) / len(scored)) == pytest.approx((measure["n"], measure["value"]))
