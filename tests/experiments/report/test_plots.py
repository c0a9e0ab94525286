"""Plots of stored runs: which are drawn, what they say of their runs, in which formats, and what they need."""

import base64
import json
import re
import struct
import sys

import pytest

import medexam

ZERO_SHOT, GUIDED = {"kind": "zero_shot"}, {"kind": "zero_shot", "answer_format": "guided"}


def test_each_plot_is_drawn_of_the_runs_that_have_its_data(make_run, label_scores, tmp_path) -> None:
    runs = [
        make_run(ZERO_SHOT, "rrwu", extra=label_scores),
        make_run({"kind": "retrieve_then_answer"}, "rwrmr"),
        make_run(GUIDED, "wrrrr"),
    ]
    medexam.report(*runs, plots=tmp_path / "plots")
    pictures = {path.stem: path.read_bytes() for path in (tmp_path / "plots").iterdir()}
    assert pictures.keys() == {
        *("strategies", "accuracy_by_year", "accuracy_by_discipline", "reliability"),
    }
    for name, picture in pictures.items():
        assert picture.startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", picture[16:24])
        assert 900 <= width <= 1500, name
        assert 300 <= height <= 1500, name
    assert "n = 16 to 20 questions a run" in pictures["strategies"].decode("latin-1")
    assert "95 % interval" in pictures["strategies"].decode("latin-1")


def test_questions_without_a_year_have_no_plot_of_years(medexam, tmp_path) -> None:
    (tmp_path / "mine.csv").write_text(
        "question,A,B,answer,subject\nWhich?,this one,that,A,anatomy\nWho?,he,she,B,history\n"
    )
    assert medexam("init", "mine.csv")[0] == 0
    assert medexam("run", "mine.yaml", "--program", "longest,random")[0] == 0
    code, _, errors = medexam("report", "runs", "--plots", "plots", "--html", "page.html")
    assert (code, "accuracy_by_year" in errors) == (0, False)
    assert {path.stem for path in (tmp_path / "plots").iterdir()} == {"strategies", "accuracy_by_discipline"}
    assert "exam year" not in (tmp_path / "page.html").read_text()


def test_a_run_without_a_scored_question_draws_nothing(make_run, tmp_path) -> None:
    with pytest.raises(medexam.MedExamError, match="nothing to draw"):
        medexam.report(make_run(ZERO_SHOT, "f"), plots=tmp_path / "plots")


def test_a_file_gets_the_format_of_its_ending_and_equal_runs_equal_files(make_run, tmp_path) -> None:
    run = make_run(ZERO_SHOT, "rrwrrrwrrw")
    for ending, start in ((".pdf", b"%PDF"), (".svg", b"<?xml")):
        path = tmp_path / f"strategies{ending}"
        medexam.report(run, plots=path)
        first = path.read_bytes()
        assert first.startswith(start)
        medexam.report(run, plots=path)
        assert path.read_bytes() == first
    drawn = re.findall(r"<!-- (.*?) -->", path.read_text(), re.DOTALL)
    assert {"70.0", "[48.1, 85.5]"} <= set(drawn), "the accuracy of 14 of 20 and Wilson's interval"
    medexam.report(run, plots=tmp_path / "all.pdf")
    assert sorted(path.stem for path in tmp_path.glob("all-*.pdf")) == [
        "all-accuracy_by_discipline",
        "all-accuracy_by_year",
        "all-strategies",
    ]


def test_what_cannot_be_drawn_is_refused_with_the_way_out(make_run, tmp_path, monkeypatch) -> None:
    run = make_run(ZERO_SHOT, "rrw")
    with pytest.raises(medexam.MedExamError, match=r"ends in \.png, \.pdf, \.svg"):
        medexam.report(run, plots=tmp_path / "strategies.eps")
    (tmp_path / "file").write_text("")
    with pytest.raises(medexam.MedExamError, match="--plots"):
        medexam.report(run, plots=tmp_path / "file")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(medexam.MedExamError, match=r"pip install 'medexam\[plots\]'"):
        medexam.report(run, plots=tmp_path / "plots")


def test_the_page_draws_the_scores_of_each_run(make_run, tmp_path) -> None:
    runs = [make_run(ZERO_SHOT, "rrwu"), make_run(GUIDED, "rwrrr")]
    report = medexam.report(*runs, html=tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    images = re.findall(r'src="data:image/svg\+xml;base64,([^"]*)" alt="Accuracy by', page)
    plots = [base64.b64decode(image).decode() for image in images]
    assert len(plots) == 2
    by_year, by_discipline = ([text.strip() for text in re.findall(r">([^<>]+)<", plot)] for plot in plots)
    assert {"2013", "2015", "zero_shot (n = 20)", "zero_shot-guided (n = 20)", "chance"} <= set(by_year)
    for document in json.loads(json.dumps(report.document())):
        for scores in document["metrics"]["by"]["discipline"].values():
            accuracy = scores["measures"]["accuracy"]
            low, high = accuracy["interval"]
            assert f"{100 * accuracy['value']:.1f}" in by_discipline
            assert f"[{100 * low:.0f}, {100 * high:.0f}]" in by_discipline
