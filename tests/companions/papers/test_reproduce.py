"""`medexam reproduce` as a user runs it: tables from real runs and real data, beside the paper's."""

import json
import os

import pytest
from typer.testing import CliRunner

from medexam.cli import app
from medexam.companions.papers import making
from medexam.companions.papers.beside import Beside
from medexam.companions.papers.catalogue import find_paper_entry, list_entries
from medexam.companions.papers.making import plan
from medexam.companions.papers.paper import Grid, all_papers
from medexam.errors import DatasetError, EngineError, SpecError
from medexam.specs import build_cells, load_document

IR = "program.relevance.retriever"


def call(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["reproduce", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module", autouse=True)
def sent(tmp_path_factory):
    """What was sent to MLflow: a list of runs for each call. How runs are sent is tested in `track`."""
    sent = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEDEXAM_RUNS", str(tmp_path_factory.mktemp("reproduced")))
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setattr("medexam.companions.papers.actions.track", lambda runs, **_: sent.append(runs))
        yield sent


@pytest.fixture
def data():
    if not os.environ.get("MEDEXAM_DATA"):
        pytest.skip("MEDEXAM_DATA is not set: it names the folder that holds headqa_v1/HEAD.json")


NUMBERED = {
    ("headqa-v1", "table"): 9,
    ("headqa-v2", "table"): 4,
    ("headqa-v2", "figure"): 14,
    ("casimedicos", "table"): 21,
}
"""The highest number of each paper's tables and figures."""


def test_the_list_names_every_table_and_figure_or_says_why_not() -> None:
    listed = json.loads(call("--list", "--json"))
    names = [entry["name"] for entry in listed]
    numbered = [name for name in names if name.split("/")[-1].startswith(("table-", "figure-"))]
    wanted = {f"{paper}/{kind}-{n + 1}" for (paper, kind), last in NUMBERED.items() for n in range(last)}
    assert sorted(numbered) == sorted(wanted)
    assert "cliniqlink" in names
    printed = " ".join(call("--list").split())
    for entry in listed:
        assert entry["name"] in printed
        if entry["obstacle"]:
            with pytest.raises(SpecError, match=entry["name"]):
                call(entry["name"])


def test_every_spec_behind_a_table_ships_and_every_figure_has_an_entry() -> None:
    for entry in list_entries():
        for spec in entry.item.specs:
            assert build_cells(load_document(spec), {})[1]
    for paper in all_papers():
        assert {f"table-{number}" for number in paper.figures} <= set(paper.reproduce)


@pytest.mark.data
def test_a_control_comes_out_as_printed(data, sent, tmp_path) -> None:
    target, longest = tmp_path / "table.md", ("--set", "program=[longest]")
    specs = ("--only", "headqa_v1_controls")
    (table,) = json.loads(call("headqa-v1/table-5", *specs, *longest, "--json", "--markdown", target))
    (run,) = table["runs"]
    assert table["table"] == 5
    assert [figure["difference"] for figure in run["figures"].values()] == [0.0] * 7
    assert all(figure["within"] for figure in run["figures"].values())
    assert [each.record.run_id for each in sent[-1]] == [run["run_id"]]
    assert "| LENGTH es | 26.9 |" in target.read_text()
    printed = call("headqa-v1/table-7", "--only", "headqa_v1_controls_test", *longest)
    assert "Table 7: accuracy, supervised setting (test split)" in printed
    assert printed.count("difference") == 1


@pytest.mark.data
def test_what_cannot_run_here_is_named_and_the_rest_runs(data) -> None:
    done = CliRunner().invoke(app, ["reproduce", "headqa-v1/table-6", "--limit", "60"])
    assert done.exit_code == 0
    for spec in ("headqa_v1_ir_es", "headqa_v1_ir_en", "headqa_v1_readers"):
        assert f"left out {spec}: " in done.stderr
    assert "BLIND 3 es" in done.stdout


@pytest.mark.data
def test_what_breaks_is_named_and_the_rest_is_shown(data, tmp_path, monkeypatch) -> None:
    corpus = tmp_path / "articles.jsonl"
    corpus.write_text('{"id": "1", "text": "calcium"}\n{"id": "2", "text": "potassium"}\n')
    carry_out = making.carry_out

    def without_library(plan, *more):
        if plan.name == "headqa_v1_ir_en":
            raise EngineError("searching by words needs bm25s: pip install 'medexam[retrieval]'")
        return carry_out(plan, *more)

    monkeypatch.setattr(making, "carry_out", without_library)
    asked = ["reproduce", "headqa-v1/table-5", "--set", f"{IR}.corpus={corpus}", "--limit", "12"]
    done = CliRunner().invoke(app, [*asked, "--only", "headqa_v1_controls", "--only", "headqa_v1_ir_en"])
    assert done.exit_code == 0, done.output
    assert "left out headqa_v1_ir_en: " in done.stderr
    assert "LENGTH es" in done.stdout
    done = CliRunner().invoke(app, [*asked, "--only", "headqa_v1_ir_en"])
    assert isinstance(done.exception, EngineError)


@pytest.mark.data
def test_an_override_reaches_the_parts_that_it_fits(data, tmp_path) -> None:
    corpus = tmp_path / "articles.jsonl"
    rows = [{"id": str(n), "title": f"Article {n}", "text": f"calcium potassium neuron {n}"} for n in range(30)]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    overrides = ["--set", f"{IR}.corpus={corpus}", "--limit", 60]
    specs = ["--only", "headqa_v1_controls", "--only", "headqa_v1_ir_en"]
    (table,) = json.loads(call("headqa-v1/table-5", *specs, *overrides, "--json"))
    assert [(run["strategy"], run["language"]) for run in table["runs"][-2:]] == [("IR", "en"), ("IR", "en")]
    assert [row[0] for row in table["rows"][-6::3]] == ["IR en", "relevance-bm25 en"]
    plan_of = json.loads(call("headqa-v1/table-5", *specs, *overrides, "--plan", "--json"))
    assert [part["missing"] for part in plan_of["parts"]] == [None, None]
    assert [cell["owed"] for cell in plan_of["parts"][1]["cells"]] == [0, 0]


@pytest.mark.data
def test_people_stand_beside_the_solvers_of_2016(data, tmp_path) -> None:
    corpus = tmp_path / "articles.jsonl"
    corpus.write_text('{"id": "1", "text": "calcium"}\n{"id": "2", "text": "potassium"}\n')
    printed = call("headqa-v1/table-9", "--set", f"{IR}.corpus={corpus}", "--limit", 60)
    best = next(line for line in printed.splitlines() if "Avg 10 best humans" in line)
    assert best.split()[-6:] == ["627.1", "592.2", "515.2", "575.5", "602.1", "529.1"]


def test_a_plan_says_what_a_table_needs(tmp_path) -> None:
    # The sample stands for the data set that is not here.
    document = json.loads(call("headqa-v2/table-2", "--plan", "--json", "--set", "dataset.name=headqa_sample"))
    (part,) = document["parts"]
    cells = {(cell["model"], cell["program"], cell["language"]): cell for cell in part["cells"]}
    assert len(cells) == 4 * 2 * 3
    large = cells["Llama-3.1-70B-Instruct", "chain_of_thought", "en"]
    small = cells["Llama-3.1-8B-Instruct", "chain_of_thought", "en"]
    assert (small["gpus"], large["gpus"], small["measured"]) == (1, 2, False)
    # Nearly all of it is writing 300 tokens at 5,777 a second.
    assert small["hours"] == pytest.approx(small["owed"] * 300 / 5777 / 3600, rel=0.2)
    direct = cells["Llama-3.1-8B-Instruct", "zero_shot", "en"]
    assert direct["hours"] < small["hours"] / 5
    printed = call("headqa-v2/table-2", "--plan", "--set", "dataset.name=headqa_sample")
    assert "All together: " in printed


def test_a_figure_of_runs_is_narrowed_to_what_is_at_hand() -> None:
    sample = ["--set", "dataset.name=headqa_sample", "--set", "dataset.language=en"]
    years = call(
        "headqa-v2/figure-12", *sample, "--set", "program=[random, longest]", "--set", "model=embedded", "--json"
    )
    assert [run["program"] for run in json.loads(years)] == ["random", "longest"]


def test_accuracy_by_year_is_of_english_alone_on_one_axis(tmp_path) -> None:
    sample = ("--set", "dataset.name=headqa_sample", "--set", "program=[random, longest]", "--set", "model=embedded")
    runs = json.loads(call("headqa-v2/figure-12", *sample, "--json", "--out", tmp_path))
    assert [(run["program"], run["language"]) for run in runs] == [("random", "en"), ("longest", "en")]
    assert (tmp_path / "accuracy_by_year.png").exists()
    both = call("headqa-v2/figure-12", *sample, "--set", "dataset.language=[en, es]", "--json")
    assert {run["language"] for run in json.loads(both)} == {"en", "es"}


@pytest.mark.data
def test_questions_are_counted_beside_the_papers(data) -> None:
    found = json.loads(call("headqa-v2/table-1", "--set", "dataset.name=headqa_v1", "--json"))
    rows = {row["row"]: row for row in found["rows"]}
    # HEAD-QA v2 took over the first one's questions of 2013 to 2017.
    assert all(rows[name]["differences"][:-1] == [0.0] * 5 for name in ("BIR", "QIR", "MIR", "FIR", "PIR"))
    assert rows["Total"]["values"][-1] == 6765


@pytest.mark.data
def test_splits_are_those_of_the_paper_and_tokens_nearly(data) -> None:
    splits = json.loads(call("headqa-v1/table-2", "--json"))
    assert [row["differences"] for row in splits["rows"]] == [[0.0] * 4] * 7
    tokens = json.loads(call("headqa-v1/table-3", "--json"))
    differences = [abs(each) for row in tokens["rows"] for each in row["differences"]]
    assert (len(differences), differences.count(0.0)) == (24, 21)
    assert max(differences) == pytest.approx(0.01)


def test_a_passages_score_is_correlated_with_being_right_beside_the_papers_r(tmp_path) -> None:
    corpus = tmp_path / "articles.jsonl"
    texts = ("vitamin C deficiency", "nursing care of patients", "cell membrane protein", "drug dose in children")
    corpus.write_text("".join(json.dumps({"id": str(n), "text": text}) + "\n" for n, text in enumerate(texts)))
    retriever = f"{{kind: bm25, corpus: {corpus}}}"
    settings = ("model={engine: embedded, max_tokens: 4}", "dataset.name=headqa_sample", "dataset.language=en")
    program = f"program={{kind: retrieve_then_answer, k: 1, answer_format: guided, retriever: {retriever}}}"
    arguments = [word for one in (*settings, program) for word in ("--set", one)]
    found = json.loads(call("headqa-v2/correlation", *arguments, "--limit", 12, "--json"))
    (row,) = found["rows"]
    assert row["published"] == [0.07]
    assert row["values"][0] is None or -1 <= row["values"][0] <= 1


def test_a_round_trip_is_scored_beside_the_papers() -> None:
    sample = ("--set", "source.name=headqa_sample", "--set", "source.language=es", "--set", "back.name=headqa_sample")
    asked = ("headqa-v2/round-trip", *sample, "--set", "through=gl", "--set", "bert=false", "--json")
    same = json.loads(call(*asked, "--set", "back.language=es"))
    assert [row["values"] for row in same["rows"]] == [[1.0, None]]
    assert same["rows"][0]["differences"][0] == pytest.approx(0.34)
    other = json.loads(call(*asked, "--set", "back.language=en", "--set", "back.limit=5"))
    assert other["questions"] == 5
    assert other["rows"][0]["values"][0] < 0.5
    with pytest.raises(SpecError, match="through=gl"):
        call("headqa-v2/round-trip")


@pytest.mark.data
def test_explanations_are_counted_beside_the_papers(data) -> None:
    found = json.loads(call("casimedicos/table-2", "--json"))
    assert found["rows"][0]["values"][0] == 553
    assert found["top_specialty"] == {"name": "Pediatrics", "documents": 37}
    assert "  paper" in call("casimedicos/table-2")
    shares = json.loads(call("casimedicos/table-9", "--json"))
    assert sum(row["values"][0] for row in shares["rows"]) == pytest.approx(100, abs=0.02)


def test_a_figure_is_written_as_a_picture(tmp_path) -> None:
    call("headqa-v2/figure-3", "--set", "dataset.name=headqa_sample", "--out", tmp_path)
    assert (tmp_path / "question_lengths.png").read_bytes().startswith(b"\x89PNG")
    lengths = json.loads(call("headqa-v2/figure-4", "--set", "dataset.name=headqa_sample", "--out", tmp_path, "--json"))
    assert (tmp_path / "question_lengths_by_discipline.png").exists()
    spread = lengths["overall"]["questions"]["words"]
    assert spread["quantiles"][2] == spread["median"]
    assert spread["quantiles"] == sorted(spread["quantiles"])
    printed = call("headqa-v2/figure-4", "--set", "dataset.name=headqa_sample")
    assert "Lengths by discipline" in printed
    assert "Lengths by year" not in printed


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["headqa-v1/table-55"], SpecError, "did you mean headqa-v1/table-5"),
        (["headqa-v1/table-5", "--only", "quickstart"], SpecError, "is made of headqa_v1_controls, headqa_v1_ir_es"),
        (["headqa-v1/table-5", "--set", "program.depth=3"], SpecError, "program.depth"),
        (["headqa-v2/table-1", "--limit", "5"], SpecError, "leave out --only and --limit"),
        (["headqa-v2/table-1", "--set", "model=embedded"], SpecError, "only keys of `dataset`"),
        (["headqa-v2/table-1", "--set", "dataset.path=nowhere.json"], DatasetError, "nowhere.json"),
        (["headqa-v1/table-5", "--list"], SpecError, "leave out PAPER/TABLE"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_way_out(arguments, error, message) -> None:
    with pytest.raises(error, match=message):
        call(*arguments)


def test_an_entry_that_can_run_nowhere_raises_what_it_lacks() -> None:
    entry = find_paper_entry("headqa-v2/table-3")
    with pytest.raises(DatasetError, match="headqa_v2"):
        plan(entry, {}, None, (), runs_dir=None, only_look=False)


def test_a_grid_beside_the_papers() -> None:
    ours = Grid(columns=("a", "b"), rows={"x": (1, 2.5), "y": (3, 4), "z": (5, 6)})
    theirs = Grid(columns=("a", "b"), rows={"x": (1, 2.25), "y": (3, 4)})
    beside = Beside("T", ours, theirs, "0")
    assert list(beside.table[0].rows) == [
        ("x", "1", "2.50"),
        ("  paper", "1", "2.25"),
        ("  difference", "=", "+0.25"),
        ("y", "3", "4"),
        ("  paper", "=", "="),
        ("z", "5", "6"),
    ]
    assert beside.document()["rows"][0]["differences"] == [0.0, 0.25]
