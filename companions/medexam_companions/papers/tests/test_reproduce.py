"""`medexam reproduce` as a user runs it: tables from real runs and real data, beside the paper's."""

import json
import os

import pytest

IR = "program.relevance.retriever"


@pytest.fixture
def call(medexam, tmp_path, monkeypatch):
    """`call("headqa-v1/table-5", "--json")`: what the command prints; `code` and `said` where it refuses."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")

    def run(*arguments, code=0, said=""):
        more = (
            () if "--list" in arguments else ("--runs-dir", tmp_path / "runs", "--tracking-uri", "http://127.0.0.1:9")
        )
        ended, out, err = medexam("reproduce", *arguments, *more)
        assert ended == code, err
        assert said in err
        return out

    return run


@pytest.fixture
def corpus(tmp_path):
    rows = [{"id": str(n), "title": f"Article {n}", "text": f"calcium potassium neuron {n}"} for n in range(30)]
    (tmp_path / "articles.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "articles.jsonl"


@pytest.fixture
def data():
    if not os.environ.get("MEDEXAM_DATA"):
        pytest.skip("MEDEXAM_DATA names no folder with headqa_v1/HEAD.json")


NUMBERED = {
    ("headqa-v1", "table"): 9,
    ("headqa-v2", "table"): 4,
    ("headqa-v2", "figure"): 14,
    ("casimedicos", "table"): 21,
}
"""The highest number of each paper's tables and figures."""


def test_the_list_names_every_table_and_figure_or_says_why_not(call) -> None:
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
            call(entry["name"], code=2, said=entry["name"])


@pytest.mark.nightly
@pytest.mark.data
def test_an_override_reaches_the_parts_that_it_fits_and_what_breaks_is_named(call, data, corpus, monkeypatch) -> None:
    overrides = ["--set", f"{IR}.corpus={corpus}", "--limit", 60]
    (table,) = json.loads(call("headqa-v1/table-5", *overrides, "--json", said="left out headqa_v1_readers: "))
    solvers = [(run["strategy"], run["language"]) for run in table["runs"] if run["strategy"] == "IR"]
    assert sorted(solvers) == [("IR", "en"), ("IR", "en"), ("IR", "es"), ("IR", "es")]
    names = [row[0] for row in table["rows"] if not row[0].startswith("  ")]
    assert {"IR en", "relevance-bm25 en", "IR es", "relevance-bm25 es"} <= set(names)


def test_accuracy_by_year_is_of_english_alone_on_one_axis(call, tmp_path) -> None:
    sample = ("--set", "dataset.name=headqa_sample", "--set", "program=[random, longest]", "--set", "model=embedded")
    runs = json.loads(call("headqa-v2/figure-12", *sample, "--json", "--out", tmp_path))
    assert [(run["program"], run["language"]) for run in runs] == [("random", "en"), ("longest", "en")]
    assert (tmp_path / "accuracy_by_year.png").exists()
    both = call("headqa-v2/figure-12", *sample, "--set", "dataset.language=[en, es]", "--json")
    assert {run["language"] for run in json.loads(both)} == {"en", "es"}


@pytest.mark.nightly
@pytest.mark.data
def test_questions_are_counted_beside_the_papers(call, data) -> None:
    found = json.loads(call("headqa-v2/table-1", "--set", "dataset.name=headqa_v1", "--json"))
    rows = {row["row"]: row for row in found["rows"]}
    # HEAD-QA v2 took over the first one's questions of 2013 to 2017.
    assert all(rows[name]["differences"][:-1] == [0.0] * 5 for name in ("BIR", "QIR", "MIR", "FIR", "PIR"))
    assert rows["Total"]["values"][-1] == 6765


@pytest.mark.nightly
@pytest.mark.data
def test_splits_are_those_of_the_paper_and_tokens_nearly(call, data) -> None:
    splits = json.loads(call("headqa-v1/table-2", "--json"))
    assert [row["differences"] for row in splits["rows"]] == [[0.0] * 4] * 7
    tokens = json.loads(call("headqa-v1/table-3", "--json"))
    differences = [abs(each) for row in tokens["rows"] for each in row["differences"]]
    assert (len(differences), differences.count(0.0)) == (24, 21)
    assert max(differences) == pytest.approx(0.01)


@pytest.mark.nightly
def test_a_passages_score_is_correlated_with_being_right_beside_the_papers_r(call, tmp_path) -> None:
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


def test_a_round_trip_is_scored_beside_the_papers(call) -> None:
    sample = ("--set", "source.name=headqa_sample", "--set", "source.language=es", "--set", "back.name=headqa_sample")
    asked = ("headqa-v2/round-trip", *sample, "--set", "through=gl", "--set", "bert=false", "--json")
    same = json.loads(call(*asked, "--set", "back.language=es"))
    assert [row["values"] for row in same["rows"]] == [[1.0, None]]
    assert same["rows"][0]["differences"][0] == pytest.approx(0.34)
    other = json.loads(call(*asked, "--set", "back.language=en", "--set", "back.limit=5"))
    assert other["questions"] == 5
    assert other["rows"][0]["values"][0] < 0.5
    call("headqa-v2/round-trip", code=2, said="through=gl")


@pytest.mark.nightly
@pytest.mark.data
def test_explanations_are_counted_beside_the_papers(call, data) -> None:
    found = json.loads(call("casimedicos/table-2", "--json"))
    assert found["rows"][0]["values"][0] == 553
    assert found["top_specialty"] == {"name": "Pediatrics", "documents": 37}
    assert "  paper" in call("casimedicos/table-2")
    shares = json.loads(call("casimedicos/table-9", "--json"))
    assert sum(row["values"][0] for row in shares["rows"]) == pytest.approx(100, abs=0.02)


def test_a_figure_is_written_as_a_picture(call, tmp_path) -> None:
    call("headqa-v2/figure-3", "--set", "dataset.name=headqa_sample", "--out", tmp_path)
    assert (tmp_path / "question_lengths.png").read_bytes().startswith(b"\x89PNG")
    lengths = json.loads(call("headqa-v2/figure-4", "--set", "dataset.name=headqa_sample", "--out", tmp_path, "--json"))
    assert (tmp_path / "question_lengths_by_discipline.png").exists()
    spread = lengths["overall"]["questions"]["words"]
    assert spread["quantiles"] == sorted(spread["quantiles"])
    assert spread["quantiles"][0] < spread["mean"] < spread["quantiles"][4] <= spread["most"]
    printed = call("headqa-v2/figure-4", "--set", "dataset.name=headqa_sample")
    assert "Lengths by discipline" in printed
    assert "Lengths by year" not in printed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["headqa-v1/table-55"], "did you mean headqa-v1/table-5"),
        (["headqa-v1/table-5", "--set", "program.depth=3"], "program.depth"),
        (["headqa-v2/table-1", "--limit", "5"], "leave out --limit"),
        (["headqa-v2/table-1", "--set", "model=embedded"], "only keys of `dataset` can be set"),
        (["headqa-v2/table-1", "--set", "dataset.path=nowhere.json"], "nowhere.json"),
        (["headqa-v2/figure-10", "--set", "retriever.kind=bm25"], "take medcpt or dense"),
        (["headqa-v1/table-5", "--list"], "leave out PAPER/TABLE"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_way_out(call, arguments, said) -> None:
    call(*arguments, code=2, said=said)
