"""Tables in LaTeX say what the others say, and a LaTeX engine accepts whatever stands in them."""

import shutil
import subprocess

import pytest

from medexam.experiments.entry.report import Report
from medexam.experiments.report.latex import MOST_ROWS, escape, render_latex
from medexam.tables import STARS, Table, count_stars

ENGINE = next((name for name in ("tectonic", "pdflatex") if shutil.which(name)), None)
DOCUMENT = (
    r"\documentclass{article}\usepackage{booktabs,graphicx,longtable}\begin{document}\input{tables.tex}\end{document}"
)


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("a_b & 5 % of {x}", r"a\_b \& 5 \% of \{x\}"),
        (r"C:\new ~ ^ |", r"C:\textbackslash{}new \textasciitilde{} \textasciicircum{} \textbar{}"),
        ("p < 0.001", "p $<$ 0.001"),
        ("right - wrong / 3", "right $-$ wrong / 3"),
        ("-4.4", "$-$4.4"),
        ("Llama-3.1-8B", "Llama-3.1-8B"),
        ("β2 and Ω, \u0391", r"$\beta$2 and $\Omega$, A"),
        ("infeccio\u0301n", "infección"),
        ("two\nlines", "two lines"),
    ],
)
def test_every_text_is_escaped(text, latex) -> None:
    assert escape(text) == latex


def test_the_best_number_is_bold_beside_its_stars_and_its_interval() -> None:
    table = Table(
        "Scores", ("Run", "A"), (("x", "+3.3 [-1.0, 7.6]"), ("y", "-")), frozenset({(0, 1)}), stars=((0, 1, 2),)
    )
    text = render_latex([(table, "")])
    assert r"x & \textbf{+3.3}$^{**}$ {\scriptsize [$-$1.0, 7.6]} \\" in text
    assert r"y & -- \\" in text
    assert rf"\caption{{Scores. {escape(STARS)}}}\label{{tab:scores}}" in text
    assert [count_stars(p) for p in (0.05, 0.049, 0.009, 0.0009)] == [0, 1, 2, 3]


def test_groups_of_columns_and_names_of_rows_stand_once() -> None:
    rows = (("M", "accuracy", "1.0", "2.0"), ("M", "  paper", "1.0", "2.0"), ("N", "accuracy", "1.0", "2.0"))
    table = Table("T", ("Model", "", "CoT en", "CoT es"), rows, text_columns=2, spans=("", "", "CoT", "CoT"))
    text = render_latex([(table, "")])
    assert " &  & \\multicolumn{2}{c}{CoT} \\\\\n\\cmidrule(lr){3-4}\nModel &  & en & es" in text
    assert " & \\quad paper & 1.0 & 2.0 \\\\\n\\addlinespace\nN & accuracy" in text


def test_code_in_a_caption_is_set_as_code() -> None:
    text = render_latex([(Table("T", ("A",), (("1",),)), "See `medexam compare`.")])
    assert r"See \texttt{medexam compare}." in text


def test_equal_titles_get_labels_of_their_own() -> None:
    text = render_latex([(Table("By year", ("a",), (("b",),)), "")] * 2)
    assert (r"\label{tab:by-year}" in text, r"\label{tab:by-year-2}" in text) == (True, True)


def test_what_a_report_says_beside_its_tables_is_a_comment(make_run) -> None:
    runs = [make_run({"kind": "zero_shot"}, "rrrw"), make_run({"kind": "longest"}, "rwwm")]
    text = Report(runs).latex()
    head = text.split("\n\n", 1)[0].splitlines()
    assert all(line.startswith("%") for line in head)
    assert any("pending" in line for line in head)
    assert text.count(r"\begin{table}") > 2


@pytest.mark.skipif(ENGINE is None, reason="no LaTeX engine here: neither tectonic nor pdflatex")
def test_an_engine_compiles_every_kind_of_table(make_run, tmp_path) -> None:
    signs = Table(
        'Signs: # $ % & ~ _ ^ \\ { } < > | " ≤ ≥ ≠ ≈ ± \u00d7 · \u2212 \u2013 \u2014 … → √ ∞ ° µ β Ω ñ',
        ("Run", "A en", "A es"),
        (("a_b", "-1.0 [-2.0, 3.0]", "<0.001"), ("  c", "-", "")),
        frozenset({(0, 1)}),
        stars=((0, 1, 3),),
        spans=("", "A", "A"),
    )
    wide = Table("Wide", tuple(f"Header {column}" for column in range(30)), (("12345.6",) * 30,))
    long = Table("Long", ("n", "A"), tuple((str(row), "1.0") for row in range(MOST_ROWS + 20)))
    report = Report([make_run({"kind": "zero_shot"}, "rrrw"), make_run({"kind": "longest"}, "rwww")])
    (tmp_path / "tables.tex").write_text(render_latex([(signs, ""), (wide, "a"), (long, "b")]) + report.latex())
    (tmp_path / "paper.tex").write_text(DOCUMENT)
    options = [] if ENGINE == "tectonic" else ["-interaction=nonstopmode", "-halt-on-error"]
    done = subprocess.run([ENGINE, *options, "paper.tex"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout
    assert (tmp_path / "paper.pdf").stat().st_size > 10_000
