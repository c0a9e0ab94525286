"""Tables, Markdown and plots say what the metrics hold."""

import re
import shutil
from io import StringIO

import pytest
from rich.console import Console

from medexam.cli.views.output import write_file
from medexam.errors import MedExamError, RunFolderError
from medexam.experiments import build_pictures, comparison_report, findings, run_report, write_pictures
from medexam.experiments.report.plots.pictures import TEX_ENGINES
from medexam.experiments.report.run_blocks import overview_blocks
from medexam.experiments.report.run_tables import failure_tables
from medexam.experiments.report.shown import print_blocks
from medexam.experiments.report.tables import comparison, facet_tables, overview_tables
from medexam.predictions import Failure
from medexam.tables import decimal, flatten, percent, with_interval
from terminal import draw

ZERO_SHOT = {"kind": "zero_shot"}
FEW_SHOT = {"kind": "few_shot"}
GUIDED = {"kind": "zero_shot", "answer_format": "guided"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (percent(0.28106), "28.1"),
        (percent(None), "-"),
        (percent(-0.0001), "0.0"),
        (decimal(-1.04), "-1.0"),
        (with_interval("28.1", (0.2707, 0.2921)), "28.1 [27.1, 29.2]"),
        (with_interval("28.1", None), "28.1"),
    ],
)
def test_numbers_have_one_form(text, expected) -> None:
    assert text == expected


def test_settings_that_are_not_set_are_left_out() -> None:
    assert flatten({"a": {"b": 1, "c": None}, "d": [2013, 2014], "e": [], "f": ""}) == {"a.b": "1", "d": "2013, 2014"}


def test_the_table_says_n_intervals_and_chance(make_run) -> None:
    run = make_run(ZERO_SHOT, "rrwu")
    text = draw(*overview_tables([run]), width=100)
    low, high = run.metrics.accuracy_interval
    assert f"50.0 [{100 * low:.1f}, {100 * high:.1f}]" in text
    for word in ("zero_shot", "SmolLM2-135M-Instruct", "headqa_sample en", " 20 ", "22.5", "25.0"):
        assert word in text
    assert "Failed" not in text


def test_only_a_complete_run_that_is_better_than_all_others_is_stressed(make_run) -> None:
    runs = [make_run(ZERO_SHOT, "w"), make_run(GUIDED, "rrw"), make_run({"kind": "longest"}, "rrrrm")]
    table = comparison(runs)
    assert table.best == {(1, table.headers.index("Accuracy"))}
    assert [row[-1] for row in table.rows] == ["0, 0", "0, 0", "0, 4"]
    assert "Failed, missing" not in comparison(runs[:2]).headers
    assert comparison(runs[:1]).best == frozenset()
    # 14 of 20 against 10 of 20 shows no difference.
    assert not comparison([runs[1], make_run(FEW_SHOT, "rw")]).best


def test_what_a_table_says_stands_below_it(make_run) -> None:
    silent = make_run(ZERO_SHOT, "u")
    runs = [silent, make_run(GUIDED, "r"), make_run({"kind": "longest"}, "rw")]
    assert findings(runs) == [
        "zero_shot-guided is better than every other run here: accuracy 100.0 % (McNemar's test).",
        "Read leniently, zero_shot scores the same.",
        'zero_shot: 20 of 20 replies without a legal answer, such as "I would say | ``` the first"; '
        "program.answer_format=guided makes that impossible.",
    ]
    level = [make_run(GUIDED, "rrrw", run_id="a"), make_run({"kind": "random"}, "rrww")]
    assert findings(level) == [
        "zero_shot-guided has the most right answers, 75.0 %; no difference from random is shown (McNemar's test)."
    ]
    assert len(findings([silent])) == 2
    console = Console(file=StringIO(), width=80)
    print_blocks(console, [*overview_blocks(runs), *overview_tables(level)])
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    said = next(at for at, line in enumerate(lines) if line.startswith("zero_shot-guided is better"))
    assert not lines[said - 1].strip()
    assert lines[said + 1].strip() == "(McNemar's test)."
    assert (
        findings([make_run({"kind": "random"}, "w", run_id="b"), make_run({"kind": "longest"}, "w", run_id="c")]) == []
    )


def test_what_differs_is_a_column_and_what_is_shared_is_in_the_title(make_run) -> None:
    english, spanish = make_run(ZERO_SHOT, "r"), make_run(ZERO_SHOT, "w", language="es")
    table = comparison([english, spanish])
    assert table.title == "demo · SmolLM2-135M-Instruct"
    assert [row[:2] for row in table.rows] == [("zero_shot", "headqa_sample en"), ("zero_shot", "headqa_sample es")]


def test_the_comparison_fits_adraw(make_run) -> None:
    runs = [make_run(GUIDED, "rwu"), make_run({"kind": "chain_of_thought"}, "rw"), make_run({"kind": "random"}, "w")]
    wide, narrow = (draw(*overview_tables(runs), width=width) for width in (100, 80))
    low, high = runs[1].metrics.accuracy_interval
    assert f"50.0 [{100 * low:.1f}, {100 * high:.1f}]" in wide
    assert f"[{100 * low:.1f}, {100 * high:.1f}]" in narrow
    for text, width in ((wide, 100), (narrow, 80)):
        assert "chain_of_thought" in text
        assert all(len(line) <= width for line in text.splitlines())


def test_square_brackets_are_text_and_not_markup(make_run) -> None:
    run = make_run({"kind": "zero_shot", "prompt": "[bold]mine.yaml"}, "r", run_id="marked")
    assert "zero_shot-[bold]mine" in draw(*overview_tables([run, run]), width=140)


def test_breakdowns_count_every_question_once(make_run) -> None:
    text = draw(*facet_tables(make_run(ZERO_SHOT, "rrwuf")), width=140)
    for group in ("biology", "medicine", "2013", "2015", "Cuaderno_2015_1_M", "Options"):
        assert group in text


def test_the_report_of_one_run(make_run) -> None:
    run = make_run(ZERO_SHOT, "rrwu", model={"engine": "embedded"})
    text = (run.folder.path / "report.md").read_text()
    assert text == run_report(run, run.folder.read_predictions())
    assert text.startswith("# demo: zero_shot · SmolLM2-135M-Instruct · headqa_sample en\n")
    for heading in ("By discipline", "By year", "By number of options", "By exam", "Unanswered questions", "Settings"):
        assert f"\n## {heading}\n" in text
    assert "| Latency, s, median / 95th percentile | 0.25 / 0.25 |" in text
    assert f"| spec digest | {run.record.spec_digest} |" in text
    assert "5 of 20: unparsed 5." in text


def test_a_reply_cannot_break_out_of_the_report(make_run) -> None:
    text = (make_run(ZERO_SHOT, "u").folder.path / "report.md").read_text()
    assert text.count("````text\nI would say | ```\nthe first\n````") == 3


def test_every_markdown_row_has_the_columns_of_its_header(make_run) -> None:
    text = (make_run(ZERO_SHOT, "rwuf").folder.path / "report.md").read_text()
    outside_code = re.sub(r"(?s)(`{4,})text.*?\1", "", text)
    tables = re.findall(r"(?m)(?:^\|.*\|$\n?)+", outside_code)
    assert len(tables) == 7
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1


def test_an_incomplete_run_says_so(make_run) -> None:
    run = make_run(ZERO_SHOT, "rrwfm")
    assert "Incomplete: 12 of 20 questions scored, 4 failed, 4 not asked yet." in run_report(run, {})
    assert f"`medexam run --resume {run.folder.path}` asks them." in run_report(run, {})
    assert "zero_shot · SmolLM2-135M-Instruct · headqa_sample en.** Incomplete" in comparison_report([run, run])


def test_failures_are_shown_by_kind_the_commonest_first(make_run) -> None:
    fault = Failure(kind="LMServerError", message="overloaded | try\nlater")

    def every_fifth(question):
        return {"failure": fault} if question.number == 5 else {}

    run = make_run(ZERO_SHOT, "rrrff", extra=every_fifth)
    assert [(one.boundary, one.kind, one.questions) for one in run.failures] == [
        ("network", "LMTransportError", 4),
        ("server", "LMServerError", 4),
    ]
    text = (run.folder.path / "report.md").read_text()
    assert "| server | LMServerError | overloaded \\| try later | 4 |" in text
    assert f"`medexam run --resume {run.folder.path}` asks them again." in text
    assert "LMServerError" in draw(*failure_tables(run))
    assert failure_tables(make_run(ZERO_SHOT, "m", run_id="other")) == []


def test_the_report_of_several_runs(make_run, tmp_path) -> None:
    runs = [make_run(ZERO_SHOT, "w"), make_run(GUIDED, "rrrw")]
    text = comparison_report(runs)
    assert re.search(r"\| zero_shot-guided \| 20 \| \*\*75\.0 \[", text)
    assert str(runs[0].folder.path) in text
    with pytest.raises(RunFolderError, match="--markdown"):
        write_file(text, tmp_path / "no" / "both.md")


def test_plots_are_pictures(make_run, tmp_path) -> None:
    runs = [make_run(ZERO_SHOT, "rrw"), make_run(GUIDED, "rwf"), make_run({"kind": "longest"}, "f")]
    paths = write_pictures(build_pictures(runs), tmp_path / "plots", "--plots")
    assert [path.name for path in paths] == ["strategies.png", "accuracy_by_year.png", "accuracy_by_discipline.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)


@pytest.mark.parametrize(("ending", "start"), [(".pdf", b"%PDF"), (".svg", b"<?xml"), (".PNG", b"\x89PNG")])
def test_a_plots_format_is_that_of_the_files_ending(make_run, tmp_path, ending, start) -> None:
    pictures = build_pictures([make_run(ZERO_SHOT, "rrw")])
    (path,) = write_pictures(pictures, tmp_path / f"strategies{ending}", "--plots")
    assert (path, path.read_bytes()[: len(start)]) == (tmp_path / f"strategies{ending}", start)
    first = path.read_bytes()
    write_pictures(pictures, path, "--plots")
    assert path.read_bytes() == first
    paths = write_pictures(pictures, tmp_path / f"all{ending}", "--plots")
    assert [path.stem for path in paths] == ["all-strategies", "all-accuracy_by_year", "all-accuracy_by_discipline"]


@pytest.mark.skipif(not any(map(shutil.which, TEX_ENGINES)), reason="no LaTeX engine here measures a PGF's texts")
def test_a_plot_is_a_pgf_where_latex_is_installed(make_run, tmp_path) -> None:
    pictures = build_pictures([make_run(ZERO_SHOT, "rrw")])
    (path,) = write_pictures(pictures, tmp_path / "strategies.pgf", "--plots")
    assert r"\begin{pgfpicture}" in path.read_text()


def test_a_pgf_without_latex_and_a_format_that_is_not_offered_are_refused(make_run, tmp_path, monkeypatch) -> None:
    pictures = build_pictures([make_run(ZERO_SHOT, "rrw")])
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MedExamError, match="or write a PDF"):
        write_pictures(pictures, tmp_path / "strategies.pgf", "--plots")
    with pytest.raises(MedExamError, match=r"ends in \.png, \.pdf, \.svg, \.pgf"):
        write_pictures(pictures, tmp_path / "strategies.eps", "--plots")


def test_plots_need_a_folder(make_run, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MedExamError, match="--plots"):
        write_pictures(build_pictures([make_run(ZERO_SHOT, "r")]), tmp_path / "file", "--plots")
