"""Reports of a handful of runs, compared whole with files in `cases/report/`: Markdown, LaTeX and the terminal."""

import re
import shutil
import subprocess

import pytest

import medexam
from medexam import plugins
from sealed_texts import check_sealed

ENGINE = next((name for name in ("tectonic", "pdflatex") if shutil.which(name)), None)
DOCUMENT = (
    r"\documentclass{article}\usepackage{booktabs,graphicx,longtable}\begin{document}\input{tables.tex}\end{document}"
)
ZERO_SHOT, GUIDED = {"kind": "zero_shot"}, {"kind": "zero_shot", "answer_format": "guided"}
RETRIEVING = {"kind": "retrieve_then_answer"}
MODEL = {"engine": "embedded"}
SIGNS = r"A_b & 5 % {x} ~ ^ | < > # $ \ [bold] µ β2 ≤ infección"


@pytest.fixture
def run_of(make_run, label_scores, cyclic_scores, passages):
    """The run of each sealed report of one run."""

    def build(name):
        match name:
            case "plain":
                warning = "The template | was\n*changed*."
                return make_run(ZERO_SHOT, "rrwufrrrwurwofmrrorw", model=MODEL, warnings=(warning,))
            case "labels":
                return make_run(ZERO_SHOT, "rrwurro", extra=label_scores)
            case "orders":
                return make_run(ZERO_SHOT, "rrwurro", extra=cyclic_scores)
            case "passages":
                return make_run(RETRIEVING, "wwrruowrr", extra=passages)

    return build


@pytest.mark.parametrize("name", ["plain", "labels", "orders", "passages"])
def test_the_markdown_of_one_run(run_of, name, tmp_path) -> None:
    path = run_of(name)
    check_sealed(f"report/{name}.md", (path / "report.md").read_text(), tmp_path)


@pytest.fixture
def no_added_tables(monkeypatch):
    """As if no package added a table, so that a report is the core's own."""
    find = plugins.entry_points
    monkeypatch.setattr(
        plugins, "entry_points", lambda group: () if group == "medexam.report_tables" else find(group=group)
    )
    plugins.added_names.cache_clear()
    yield
    plugins.added_names.cache_clear()


@pytest.fixture
def several(make_run, passages, label_scores):
    """Two baselines, a run with passages that flips answers of one, a run of another model, and a control."""
    return [
        make_run(ZERO_SHOT, "rrwurww", model=MODEL),
        make_run(GUIDED, "rrrrrrrrw", model=MODEL),
        make_run(RETRIEVING, "rwrwrrrrwfr", model=MODEL, extra=passages),
        make_run(ZERO_SHOT, "rwmrorr", model={"engine": "litellm", "name": f"openai/{SIGNS}"}, extra=label_scores),
        make_run({"kind": "longest"}, "wwwrwwr"),
    ]


@pytest.mark.usefixtures("no_added_tables")
def test_the_report_of_several_runs(several, tmp_path) -> None:
    report = medexam.report(*several, markdown=tmp_path / "several.md", latex=tmp_path / "several.tex")
    check_sealed("report/several.txt", f"{report!r}\n", tmp_path)
    for name in ("several.md", "several.tex"):
        check_sealed(f"report/{name}", (tmp_path / name).read_text(), tmp_path)


@pytest.mark.skipif(ENGINE is None, reason="no LaTeX engine here: neither tectonic nor pdflatex")
def test_an_engine_compiles_the_tables(several, tmp_path) -> None:
    medexam.report(*several, latex=tmp_path / "tables.tex")
    (tmp_path / "paper.tex").write_text(DOCUMENT)
    options = [] if ENGINE == "tectonic" else ["-interaction=nonstopmode", "-halt-on-error"]
    done = subprocess.run([ENGINE, *options, "paper.tex"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout


@pytest.mark.parametrize("width", [74, 80, 120])
def test_no_number_is_cut_however_narrow_the_terminal_is(several, medexam, monkeypatch, width) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    of_one_model = [path for path in several if path.name != "zero_shot-en-3"]
    code, out, _ = medexam("report", *of_one_model)
    assert code == 0
    tables = "\n".join(line for line in out.splitlines() if "medexam run --resume" not in line)
    assert max(map(len, tables.splitlines())) <= width
    assert "…" not in out
    document = medexam("report", *of_one_model, "--json")[1]
    accuracies = re.findall(r'^    "accuracy": ([0-9.]+)', document, re.MULTILINE)
    for accuracy in accuracies:
        assert f"{100 * float(accuracy):.1f}" in out
