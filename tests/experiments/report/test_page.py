"""The page of `medexam report --html`: what stands in it, what is missing, and that no data is taken for markup."""

import base64
import hashlib
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import medexam
from medexam.benchmarks import TableRun, find_benchmark
from medexam.cli import run_command
from medexam.cli.views.runs import read_current
from medexam.datasets import load_exam_set
from medexam.errors import MedExamError, RunFolderError
from medexam.experiments.report.page import document, write_page
from medexam.experiments.report.page.blocks import Block
from medexam.experiments.report.page.document import read_asset
from medexam.experiments.report.page.overview import build_overview
from medexam.experiments.report.page.sections import merge_captions, stack
from medexam.experiments.store.run_folder import PARQUET
from medexam.predictions import Failure, Reason, Status
from medexam.specs import DatasetSpec
from medexam.tables import Table
from page_blocks import unpack
from stored_runs import write_run

SAMPLE = Path(medexam.__file__).parent / "datasets" / "sample" / "HEAD_EN.json"
LONGEST = {"kind": "longest"}
BLIND = {"kind": "blind", "option": 2}
ZERO_SHOT = {"kind": "zero_shot"}
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\" onclick='alert(3)"


class _Page(HTMLParser):
    """A page's elements, the text of its tables by caption, and its blocks."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.texts: dict[str, list[str]] = {}
        self.blocks: dict[str, Block] = {}
        self._open: list[str] = []
        self._rows: list[list[str]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in {"meta", "img"}:
            self._open.append(tag)
        if tag == "table":
            self._rows = []
        elif tag == "tr":
            self._rows.append([])
        elif tag in {"th", "td"}:
            self._rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        where = self._open[-1] if self._open else ""
        self.texts.setdefault(where, []).append(data)
        if where == "caption":
            self.tables.setdefault(data, self._rows)
        elif {"td", "th"} & set(self._open):
            self._rows[-1][-1] += data
        elif where == "script":
            name = self.elements[-1][1].get("id") or ""
            if name:
                self.blocks[name.removeprefix("block-")] = Block(name, data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def sample():
    return load_exam_set(DatasetSpec())


@pytest.fixture(autouse=True)
def drawn(monkeypatch):
    """One plot in the place of the real ones, which take a second to draw; gives the real function."""
    real = document.draw_plots
    monkeypatch.setattr(document, "draw_plots", lambda runs: [("<svg></svg>", "One point & more.")])
    return real


@pytest.fixture
def page(tmp_path):
    """`page(folder, ...)` -> the parsed page of these runs."""

    def make(*folders):
        path = tmp_path / "page.html"
        size = write_page(read_current(folders), path)
        html = path.read_text(encoding="utf-8")
        assert size.bytes == len(html.encode())
        return _Page(html)

    return make


def _chosen(number):
    return lambda question, gold: {"status": Status.ANSWERED, "answer": number}


def _some(question, gold):
    """Right, wrong, unanswered and failed by turns of the printed number, with all that a page can show."""
    spent = {"prompt_tokens": 90, "completion_tokens": 4, "latency_s": 0.5, "finish_reason": "stop"}
    turn = question.number % 4
    if turn == 3:
        return {"status": Status.FAILED, "failure": Failure(kind="LMTransportError", message="connection refused")}
    if turn == 2:
        return {"status": Status.UNANSWERED, "reason": Reason.UNPARSED, "reply": "Neither of them.", **spent}
    answer = gold if turn else next(number for number in question.option_numbers if number != gold)
    return {"status": Status.ANSWERED, "answer": answer, "reply": f"Because. {{Answer: {answer}}}", **spent}


@pytest.fixture
def two_runs(tmp_path, sample):
    return [
        write_run(tmp_path / "longest", sample, LONGEST, _chosen(1)),
        write_run(tmp_path / "asked", sample, ZERO_SHOT, _some, environment={"asked": 120, "asked_s": 60.0}),
    ]


def test_the_page_has_every_section_of_two_runs(page, two_runs) -> None:
    found = page(*two_runs)
    assert [each["id"] for each in found.named("section") if "id" in each] == ["scores", "questions", "more"]
    assert [each["id"] for each in found.named("details") if "id" in each] == [
        "runs",
        "compared-headqa_sample",
        "by-discipline",
        "by-year",
        "by-options",
        "by-exam",
        "costs",
        "failures",
        "details",
        "plots",
    ]
    assert any("% of 120 questions right; chance is" in text for text in found.texts["p"])
    headers, *rows = found.tables["Runs"]
    assert headers == ["Run", "Experiment", "Model", "Data set", "Folder", "When", "n", "Of", "State"]
    assert rows[0][:4] == ["longest", "demo", "none", "headqa_sample en"]
    assert rows[0][5:] == ["2026-11-20 10:30", "120", "30 exams", "complete"]
    assert rows[1][-1] == "incomplete"
    headers, *rows = found.tables["By discipline"]
    assert headers == ["Discipline", "n", "Chance", "longest", "zero_shot"]
    assert [row[0] for row in rows] == ["biology", "chemistry", "medicine", "nursing", "pharmacology", "psychology"]
    assert all(re.fullmatch(r"\d\d to 20", row[1]) and row[2] != "-" for row in rows)
    assert len(found.tables["By exam"]) == 31
    assert found.tables["Failed questions"][1][:3] == ["zero_shot", "network", "LMTransportError"]
    assert {"Scores on the same questions", "Against longest", "Settings"} <= found.tables.keys()
    assert any("zero_shot is incomplete: " in text for text in found.texts["p"])


def test_one_run_has_its_own_figures_and_no_comparison(page, two_runs) -> None:
    found = page(two_runs[0])
    assert "compared-headqa_sample" not in {attributes.get("id") for attributes in found.named("details")}
    assert found.tables["By discipline"][0][:4] == ["Discipline", "n", "Right", "Wrong"]
    assert "v1 accuracy" in found.tables["By discipline"][0]


def test_the_page_loads_nothing_and_runs_its_own_scripts_only(page, two_runs) -> None:
    found = page(*two_runs)
    for _, attributes in found.elements:
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("src", "href", "data", "action"):
            assert (attributes.get(name) or "#").startswith(("#", "data:image/png;base64,"))
    assert not {"link", "iframe", "object", "base", "form"} & {tag for tag, _ in found.elements}
    (policy,) = (each["content"] for each in found.named("meta") if "http-equiv" in each)
    hashes = [
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in found.texts["script"]
        if "use strict" in text
    ]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert f"script-src {' '.join(hashes)}; img-src data:;" in policy
    assert len(hashes) == len(document.SCRIPTS)
    assert "unsafe" not in policy


@pytest.mark.parametrize("name", [document.STYLE, *document.SCRIPTS])
def test_no_asset_closes_its_element_or_writes_markup(name) -> None:
    text = read_asset(name)
    for forbidden in ("</", "<!--", "innerHTML", "insertAdjacentHTML", "document.write", "eval(", "fetch("):
        assert forbidden not in text


def test_hostile_names_and_messages_stay_text(page, tmp_path, sample) -> None:
    def fail(question, gold):
        return {"status": Status.FAILED, "failure": Failure(kind=HOSTILE, message=HOSTILE)}

    run = write_run(
        tmp_path / "run",
        sample,
        ZERO_SHOT,
        lambda question, gold: fail(question, gold) if question.number % 2 else _some(question, gold),
        model={"engine": "litellm", "name": HOSTILE},
        environment={"engine": {"engine": "litellm", "model": HOSTILE.replace("/", "")}, "host": HOSTILE},
        warnings=(HOSTILE,),
    )
    found = page(run)
    plain = [attributes for attributes in found.named("script") if "id" not in attributes]
    assert len(plain) == len(document.SCRIPTS)
    assert len(found.named("img")) == sum("data:" in (each["src"] or "") for each in found.named("img"))
    assert any(HOSTILE in text for text in found.texts["p"])
    assert ["ran.host", HOSTILE] in found.tables["Settings"]
    assert found.tables["Failed questions"][1][1] == HOSTILE


def test_every_question_is_in_a_block(page, two_runs, sample) -> None:
    found = page(*two_runs)
    index = unpack(found.blocks["index"])
    assert index["runs"] == ["longest", "zero_shot"]
    assert index["keys"] == [question.key for question in sample.questions]
    assert (index["starts"], index["without_texts"]) == ([0], [None, None])
    at = next(at for at, question in enumerate(sample.questions) if question.number % 4 == 1)
    question = sample.questions[at]
    discipline, year = index["facets"]
    assert discipline["values"][discipline["of"][at]] == question.exam.discipline
    assert year["values"][year["of"][at]] == question.exam.year
    assert index["outcomes"][1][at] == "r"
    assert set(index["outcomes"][1]) == set("rwuf")
    assert unpack(found.blocks["stems"])[at] == question.stem
    item = unpack(found.blocks["part-0"])["items"][at]
    gold = sample.golds[question.key].number
    (wording,) = item["wordings"]
    assert (item["key"], wording["stem"], wording["gold"]) == (question.key, question.stem, gold)
    assert wording["options"] == [[option.number, option.text] for option in question.options]
    assert item["answers"][0] == {"status": "answered", "answer": 1, "wording": 0}
    assert item["answers"][1]["reply"] == f"Because. {{Answer: {gold}}}"
    failed = unpack(found.blocks["part-0"])["items"][index["outcomes"][1].index("f")]
    assert failed["answers"][1]["failure"] == "LMTransportError: connection refused"


def test_a_question_in_two_languages_has_two_wordings(page, tmp_path, sample) -> None:
    spanish = load_exam_set(DatasetSpec(language="es"))
    found = page(
        write_run(tmp_path / "en", sample, LONGEST, _chosen(1)),
        write_run(tmp_path / "es", spanish, LONGEST, _chosen(2)),
    )
    item = unpack(found.blocks["part-0"])["items"][0]
    assert [wording["language"] for wording in item["wordings"]] == ["en", "es"]
    assert [answer["wording"] for answer in item["answers"]] == [0, 1]
    assert unpack(found.blocks["stems"])[0].split("\n") == [sample.questions[0].stem, spanish.questions[0].stem]
    assert unpack(found.blocks["index"])["runs"] == ["longest en", "longest es"]


@pytest.fixture
def lost_data(tmp_path):
    """A run whose data set has been removed since."""
    path = tmp_path / "HEAD_EN.json"
    path.write_bytes(SAMPLE.read_bytes())
    exams = load_exam_set(DatasetSpec(name="headqa_v1", path=path))
    run = write_run(tmp_path / "run", exams, BLIND, _chosen(2), dataset={"path": path})
    path.unlink()
    return run, exams


def test_without_the_data_set_the_folder_has_to_do(page, lost_data) -> None:
    run, exams = lost_data
    line = read_current([run])[0].note
    assert "HEAD_EN.json" in line
    found = page(run)
    assert any("as it was scored when it ran" in text for text in found.texts["p"])
    index = unpack(found.blocks["index"])
    assert "HEAD_EN.json" in index["without_texts"][0]
    assert index["facets"][0]["values"] == ["biology", "chemistry", "medicine", "nursing", "pharmacology", "psychology"]
    right = sum(exams.golds[question.key].number == 2 for question in exams.questions)
    assert index["outcomes"][0].count("r") == right
    item = unpack(found.blocks["part-0"])["items"][0]
    key = exams.questions[0].key
    assert item["wordings"] == [
        {"language": "en", "gold": exams.golds[key].number, "exam": exams.questions[0].exam.name}
    ]
    assert set(unpack(found.blocks["stems"])) == {""}


def test_two_runs_without_their_data_set_are_not_compared(page, lost_data, tmp_path) -> None:
    run, _ = lost_data
    other = tmp_path / "other"
    other.mkdir()
    for file in run.path.iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    found = page(run, type(run)(other))
    assert any(text.startswith("Both runs cannot be compared: ") for text in found.texts["p"])
    assert len(found.tables["Runs"]) == 3


def test_without_the_parquet_file_an_answer_is_neither_right_nor_wrong(page, lost_data) -> None:
    run, exams = lost_data
    (run.path / PARQUET).unlink()
    index = unpack(page(run).blocks["index"])
    assert set(index["outcomes"][0]) == {"a"}
    assert ([facet["values"] for facet in index["facets"]], index["numbers"][0]) == ([[], []], None)
    assert len(index["keys"]) == len(exams.questions)


def test_plots_stand_in_the_page_in_its_colours(page, two_runs, drawn, monkeypatch) -> None:
    monkeypatch.setattr(document, "draw_plots", drawn)
    found = page(*two_runs)
    plots = [each for each in found.named("svg") if "aria-label" in each]
    assert len(plots) == len(found.texts["figcaption"]) - found.texts["figcaption"].index(plots[0]["aria-label"])
    assert all(each["fill"] == "currentColor" and each["role"] == "img" for each in plots)
    for tag, attributes in found.elements:
        assert "style" not in attributes, tag
        assert not {"#000000", "#ffffff"} & {attributes.get("fill"), attributes.get("stroke")}


def test_a_strip_stands_where_its_score_is_on_the_scale(two_runs) -> None:
    runs = read_current(two_runs)
    accuracy, exam_score = build_overview(runs).panels.values()
    first, last = (int(label) for _, label in (accuracy.ticks[0], accuracy.ticks[-1]))
    for run, mark in zip(runs, accuracy.marks, strict=True):
        low, high = run.metrics.accuracy_interval
        for place, value in ((mark.place, run.metrics.accuracy), (mark.low, low), (mark.high, high)):
            assert first + place / 100 * (last - first) == pytest.approx(100 * value, abs=0.01)
    assert [label for _, label in exam_score.ticks] == sorted((label for _, label in exam_score.ticks), key=int)


def test_without_matplotlib_the_page_says_how_to_install_it(page, two_runs, monkeypatch) -> None:
    def missing(runs):
        raise MedExamError("plots need matplotlib: pip install 'medexam[plots]'")

    monkeypatch.setattr(document, "draw_plots", missing)
    found = page(*two_runs)
    assert "Plots are left out: plots need matplotlib: pip install 'medexam[plots]'" in found.texts["p"]


@pytest.mark.parametrize("path", ["no/such/folder/page.html", "."])
def test_a_page_that_cannot_be_written_is_one_line(path, two_runs, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(RunFolderError, match=r"cannot write .*; choose another file with --html") as raised:
        write_page(read_current(two_runs[:1]), Path(path))
    assert "\n" not in str(raised.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_the_command_writes_the_page(two_runs, lost_data, tmp_path, monkeypatch, capsys) -> None:
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["medexam", "report", *map(str, arguments)])
        try:
            run_command()
        except SystemExit as done:
            return done.code, capsys.readouterr()
        return 0, capsys.readouterr()

    target = tmp_path / "out.html"
    code, printed = call(two_runs[0].path, "--html", target, "--json")
    assert (code, len(json.loads(printed.out))) == (0, 1)
    assert re.search(rf"wrote {target} \(120 questions, \d\.\d MB\)", printed.err)
    code, printed = call(lost_data[0].path, "--html", target)
    assert not code
    assert "medexam: warning: run: shown as it was scored" in printed.err
    assert "blind-2" in printed.out
    code, printed = call(lost_data[0].path)
    assert (code, printed.err.count("\n")) == (0, 1)
    code, printed = call(two_runs[0].path, "--html", tmp_path)
    assert (code, printed.err.count("\n")) == (2, 1)


def _by_year(*runs: TableRun) -> Table:
    return next(
        table for table, _ in find_benchmark(DatasetSpec(name="headqa_v1")).matrices(runs) if table.title == "By year"
    )


def test_a_matrix_spans_what_runs_have_scored(two_runs) -> None:
    runs = read_current(two_runs)
    table = _by_year(*(TableRun(name, {}, run.metrics, run.complete) for name, run in zip("ab", runs, strict=True)))
    assert table.headers == ("Year", "n", "Chance", "a", "b")
    year = table.rows[0][0]
    sizes = [run.metrics.by_year[int(year)].n for run in runs]
    assert table.rows[0][1] == f"{min(sizes)} to {max(sizes)}"
    table = _by_year(*(TableRun(name, {}, runs[0].metrics, True) for name in "ab"))
    assert table.rows[0][1] == str(sizes[0])
    assert not table.best, "a year has too few questions for a best run"


def test_tables_of_alike_headers_are_stacked() -> None:
    first, second = Table("Cost", ("What", "In all"), (("Seconds", "3"),)), Table("Cost", ("What", "In all"), ())
    other = Table("Cost", ("What",), (("Seconds",),))
    found = stack([first, other, second, first], ["a", "b", "c", "d"])
    assert [table.headers for table in found] == [("Run", "What", "In all"), ("Run", "What")]
    assert found[0].rows == (("a", "Seconds", "3"), ("d", "Seconds", "3"))
    assert found[0].text_columns == 2


def test_captions_say_once_what_all_runs_share() -> None:
    assert (
        merge_captions(["Same. 2 a second.", "Same. 0.5 a second."], ["a", "b"])
        == "Same. a: 2 a second. b: 0.5 a second."
    )
    assert merge_captions(["Same."] * 3, ["a", "b", "c"]) == "Same."
    assert merge_captions([], []) == ""
