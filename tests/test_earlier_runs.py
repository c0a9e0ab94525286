"""Run folders that an earlier version wrote: reported, compared and resumed with the same numbers and digests.

`earlier_runs/README.md` says which version wrote them, and how. Only the command line is used here. JSON has to be
equal, comparisons but for the last digit. Markdown has to show the same figures in the same order. ClinIQLink's scores
need be close only: the similarities of a sentence encoder differ in the last digits between processors.
"""

import hashlib
import json
import math
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from medexam import load_run, plan

FIXTURES = Path(__file__).parent / "earlier_runs"
HOME, PRINTED = FIXTURES / "home", FIXTURES / "printed"
RUNS = sorted(path.name for path in (HOME / "runs").iterdir())
KILLED = next(run for run in RUNS if run.startswith("killed"))
OUTAGE = next(run for run in RUNS if run.startswith("outage"))
UNBROKEN = next(run for run in RUNS if run.startswith("direct-scripted-zero_shot-en"))
"""Holds all answers of the run that was killed."""
SCORED = [run for run in RUNS if run != KILLED]
COMPLETE = [run for run in SCORED if run != OUTAGE]
DERIVED = ("metrics.json", "report.md", "predictions.parquet", "made_from.json")
EARLIER_WORDS = "paper_v0"
"""Runs that were asked in the words that `paper` had then are shown and continued under this name."""
LOOKED_UP = "passages"
"""Runs whose passages were found by words of two characters or more: shown, and never continued."""
NO_MLFLOW = ("--tracking-uri", "sqlite:////dev/null/mlflow.db")


def read_printed(name: str) -> dict[str, Any]:
    return json.loads((PRINTED / name).read_text(encoding="utf-8"))


REPORTS, COMPARISONS, PLANS, MLFLOW = (
    read_printed(f"{name}.json") for name in ("reports", "comparisons", "plans", "mlflow")
)


def unnamed(text: str) -> str:
    """What is printed, with programs called as they were when the words had no versions."""
    return re.sub(f"[-_]{EARLIER_WORDS}", "", text).replace(EARLIER_WORDS, "paper")


def figures(path: Path) -> list[str]:
    """The numbers of a report, in order, without those of its warnings, of models' prints, and of the paper that it
    cites.
    """
    text = re.sub(r"(?m)^\*\*.*\*\* Warning: .*$", "", unnamed(path.read_text(encoding="utf-8")))
    text = re.sub(
        r"(?m)^.*[Tt]he model \w+ \([0-9a-f]{8}\) is not.*$|\([0-9a-f]{8}\)|\b\w+(?:-\w+)+-[0-9a-f]{12}\b", "", text
    )
    text = re.sub(r"\(point-biserial; [^)]*\)", "", text)
    return re.findall(r"[-+]?\d+(?:[.,]\d+)*", text)


def same(one: Any, other: Any, *, tolerance: float) -> bool:
    """Whether two JSON values are equal, numbers within `tolerance`; exactly where that is 0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key], tolerance=tolerance) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(*pair, tolerance=tolerance) for pair in zip(one, other, strict=True))
    if tolerance and isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, abs_tol=tolerance)
    return one == other


ADDED = ("detectable_difference",)
"""Fields of a comparison that earlier versions did not print."""


def without_added(value: Any) -> Any:
    """A comparison as earlier versions printed it."""
    if isinstance(value, dict):
        return {key: without_added(each) for key, each in value.items() if key not in ADDED and not _tells(key, each)}
    return [without_added(each) for each in value if not _is_note(each)] if isinstance(value, list) else value


def _tells(key: str, value: Any) -> bool:
    """Whether it tells models of one name apart: by the run's folder in earlier versions, by the model's print now."""
    return key == "name" and re.search(r"-[0-9a-f]{12}$|\([0-9a-f]{8}\)$", value) is not None


def _is_note(value: Any) -> bool:
    """Whether it is a sentence that earlier versions did not print: how two models of one name differ."""
    return isinstance(value, str) and value.lower().startswith("the model ") and ") is not " in value


def tolerance_of(run: str) -> float:
    """By how much scores may differ: a correlation's p-value comes from a continued fraction, which rounds otherwise
    than scipy's.
    """
    return {"words": 1e-5, "passages": 1e-12}.get(run.partition("-")[0], 0)


def check_metrics(run: str) -> None:
    now, before = (home / "runs" / run / "metrics.json" for home in (Path(), HOME))
    tolerance = tolerance_of(run)
    assert same(json.loads(now.read_bytes()), json.loads(before.read_bytes()), tolerance=tolerance)
    if not tolerance:
        assert now.read_bytes() == before.read_bytes()


def lack(*_: object) -> None:
    raise LookupError


@pytest.fixture
def runs(tmp_path, monkeypatch) -> Path:
    """The folder of runs, in the working directory beside the data and replies that the runs name."""
    shutil.copytree(HOME, tmp_path / "home")
    monkeypatch.chdir(tmp_path / "home")
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MEDEXAM_DATA", raising=False)
    monkeypatch.delenv("MEDEXAM_RUNS", raising=False)
    # BLEU and METEOR were not scored. What another test has loaded is found without NLTK's folders.
    for scorer in ("nltk.tokenize.word_tokenize", "nltk.translate.meteor_score.meteor_score"):
        monkeypatch.setattr(scorer, lack)
    return Path("runs")


@pytest.fixture
def medexam(runs, monkeypatch, capsys):
    """Run the command line, check its exit code, and give its standard output."""
    from medexam.cli import run_command

    def call(*arguments: object, code: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["medexam", *map(str, arguments)])
        try:
            run_command()
            done = 0
        except SystemExit as left:
            done = left.code or 0
        printed = capsys.readouterr()
        assert done == code, printed.err
        return printed.out

    return call


def check_report(medexam, run: str) -> None:
    folder = Path("runs", run)
    printed = medexam("report", folder, "--json", "--markdown", "report.md")
    asked = json.loads((folder / "spec.json").read_text(encoding="utf-8"))["identity"].get("words", {})
    assert (EARLIER_WORDS in json.loads(printed)[0]["program"]) is ("instructions" in asked)
    (document,) = json.loads(unnamed(printed))
    assert document.pop("run_dir").endswith(run)
    assert document.pop("metrics") == json.loads((folder / "metrics.json").read_bytes())
    assert same(document, REPORTS[run], tolerance=1e-5 if run.startswith("words") else 0)
    with_people = PRINTED / f"report_{run.partition('-')[0]}.md"
    assert figures(Path("report.md")) == figures(with_people if with_people.exists() else HOME / folder / "report.md")
    check_metrics(run)


@pytest.mark.parametrize("run", SCORED)
def test_a_run_is_reported_as_before(medexam, run) -> None:
    check_report(medexam, run)


@pytest.mark.parametrize("run", SCORED)
def test_a_run_is_scored_as_before(medexam, runs, run) -> None:
    for name in DERIVED:
        (runs / run / name).unlink(missing_ok=True)
    check_report(medexam, run)
    assert figures(runs / run / "report.md") == figures(HOME / "runs" / run / "report.md")
    kept = HOME / "runs" / run / "predictions.parquet"
    if kept.exists():
        now, before = pq.read_table(runs / run / "predictions.parquet"), pq.read_table(kept)
        assert now.schema.equals(before.schema)
        # Semantic scores of words come from an encoder, whose last digits differ from processor to processor.
        assert same(now.to_pylist(), before.to_pylist(), tolerance=1e-5 if run.startswith("words") else 0)


@pytest.mark.parametrize("run", SCORED)
def test_mlflow_is_told_the_same_values_under_the_same_names(runs, run) -> None:
    stored = load_run(runs / run).stored
    assert same(stored.benchmark.values(stored.metrics), MLFLOW[run], tolerance=tolerance_of(run))


@pytest.mark.parametrize("name", ["exams", "quotes", "words"])
def test_several_runs_are_reported_as_before(medexam, runs, name) -> None:
    groups = {"exams": ("direct", "guided", "reasoned")}.get(name, (name,))
    medexam("report", *(runs / run for run in SCORED if run.startswith(groups)), "--markdown", "report.md")
    assert figures(Path("report.md")) == figures(PRINTED / f"reports_{name}.md")


@pytest.mark.parametrize("name", COMPARISONS)
def test_runs_are_compared_as_before(medexam, runs, name) -> None:
    folders = [runs / run for run in COMPARISONS[name]["runs"]]
    options = ["--languages"] if name == "languages" else []
    printed = medexam("compare", *folders, *options, "--json", "--markdown", "compare.md")
    document = without_added(json.loads(unnamed(printed)))
    for each, before in zip(document["runs"], COMPARISONS[name]["document"]["runs"], strict=True):
        del each["run_dir"]
        if isinstance(before.get("metrics"), str):
            each["metrics"] = hashlib.sha256(json.dumps(each["metrics"], sort_keys=True).encode()).hexdigest()
    earlier = without_added(COMPARISONS[name]["document"])
    assert same(document, earlier, tolerance=1e-5 if name == "words" else 1e-12)
    assert figures(Path("compare.md")) == figures(PRINTED / f"compare_{name}.md")


@pytest.mark.parametrize("name", [name for name in PLANS if name != LOOKED_UP])
def test_a_spec_is_planned_as_before(medexam, name) -> None:
    planned = json.loads(unnamed(medexam("plan", f"specs/{name}.yaml", "--json")))
    assert [{key: cell[key] for key in then} for cell, then in zip(planned, PLANS[name], strict=True)] == PLANS[name]


def test_a_spec_in_todays_words_asks_anew_and_says_why(runs) -> None:
    document = yaml.safe_load(Path("specs/direct.yaml").read_text())
    del document["program"]["prompt"], document["dataset"]["as_published"]
    changed = "dataset.fingerprint, words.instructions, words.turn"
    check_asked_anew(document, runs, 12, f"what the spec names has ({changed}) changed since run direct-")


def test_what_was_found_by_other_words_is_looked_up_anew(runs) -> None:
    document = yaml.safe_load(Path(f"specs/{LOOKED_UP}.yaml").read_text())
    check_asked_anew(document, runs, 9, "what the spec names has (retriever.words) changed since run passages-")


def check_asked_anew(document: dict[str, Any], runs: Path, owed: int, said: str) -> None:
    planned = plan(document, runs_dir=runs)
    assert [cell["owed"] for cell in planned.cells] == [owed, owed]
    assert any(isinstance(block, str) and said in block for block in planned.blocks())


@pytest.mark.parametrize("run", COMPLETE)
def test_a_complete_run_is_resumed_and_nothing_is_asked(medexam, runs, run) -> None:
    answers = (runs / run / "predictions.jsonl").read_bytes()
    if run.startswith("schema_1"):
        medexam("run", "--resume", runs / run)
    elif run.startswith(LOOKED_UP):
        medexam("run", "--resume", runs / run, *NO_MLFLOW, code=2)
    else:
        (document,) = json.loads(medexam("run", "--resume", runs / run, "--json", *NO_MLFLOW))
        assert (document["run_id"], document["spec_digest"]) == (run, run.rpartition("-")[2])
    assert (runs / run / "predictions.jsonl").read_bytes() == answers
    check_metrics(run)


def test_a_killed_run_is_asked_the_rest(medexam, runs) -> None:
    lines = (runs / KILLED / "predictions.jsonl").read_text(encoding="utf-8").splitlines()
    (document,) = json.loads(medexam("run", "--resume", runs / KILLED, "--json", *NO_MLFLOW))
    assert document["spec_digest"] == KILLED.rpartition("-")[2]
    now = (runs / KILLED / "predictions.jsonl").read_text(encoding="utf-8").splitlines()
    assert now[: len(lines) - 1] == lines[:-1], "the last line is torn"
    asked = [json.loads(line)["question"] for line in now]
    assert sorted(asked) == sorted(json.loads((runs / KILLED / "spec.json").read_text())["questions"])
    unbroken = json.loads((HOME / "runs" / UNBROKEN / "metrics.json").read_text())
    for metrics in (unbroken, document["metrics"]):
        for name in [name for name in metrics if name.startswith(("latency_", "answering_"))]:
            del metrics[name]
    assert document["metrics"] == unbroken


def test_what_failed_is_asked_again_and_nothing_else(medexam, runs) -> None:
    lines = (runs / OUTAGE / "predictions.jsonl").read_text(encoding="utf-8").splitlines()
    (failed,) = (json.loads(line) for line in lines if json.loads(line)["status"] == "failed")
    (document,) = json.loads(medexam("run", "--resume", runs / OUTAGE, "--json", *NO_MLFLOW, code=3))
    assert document["spec_digest"] == OUTAGE.rpartition("-")[2]
    now = (runs / OUTAGE / "predictions.jsonl").read_text(encoding="utf-8").splitlines()
    assert now[:-1] == lines
    again = json.loads(now[-1])
    assert (again["question"], again["status"]) == (failed["question"], "failed"), "its script fails for good"
