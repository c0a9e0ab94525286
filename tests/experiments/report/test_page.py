"""The page of `medexam report --html`: what stands in it, what is missing, and that no data is taken for markup."""

import base64
import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

import medexam
from medexam.errors import RunFolderError
from medexam.predictions import Failure, RetrievedPassage
from page_blocks import Page
from small_exams import gold_of

LONGEST, ZERO_SHOT = {"kind": "longest"}, {"kind": "zero_shot"}
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\" onclick='alert(3)"
CORPUS = Path(__file__).parents[2] / "retrievers" / "corpus_sample" / "passages.jsonl.gz"

pytestmark = pytest.mark.usefixtures("without_plots")


@pytest.fixture
def page(tmp_path):
    """`page(folder, ...)` -> the parsed page of these runs."""

    def make(*folders) -> Page:
        medexam.report(*folders, html=tmp_path / "page.html")
        return Page((tmp_path / "page.html").read_text(encoding="utf-8"))

    return make


@pytest.fixture
def two_runs(make_run):
    return [make_run(LONGEST, "rrw"), make_run(ZERO_SHOT, "rwufrrm", model={"engine": "embedded"})]


def test_the_page_has_every_section_of_two_runs(page, two_runs) -> None:
    found = page(*two_runs)
    assert [each["id"] for each in found.named("section") if "id" in each] == ["scores", "questions", "more"]
    sections = [each["id"] for each in found.named("details") if "id" in each]
    parts = ("runs", "paired-comparison", "scores-by-group", "costs", "failed-questions", "details-of-longest")
    assert [each for each in sections if each.removesuffix("-section") in parts] == [
        f"{part}-section" for part in parts
    ]
    anchors = [each["id"] for each in found.named("figure") if "id" in each]
    assert {"by-discipline", "by-year", "by-number-of-options", "by-exam"} <= set(anchors)
    assert len(anchors) == len(set(anchors)), "an address leads to one place"
    headers, *rows = found.tables["Runs"]
    assert headers == ["Run", "Experiment", "Model", "Data set", "Folder", "When", "n", "Of", "State"]
    assert rows[0][:4] == ["longest", "demo", "none", "headqa_v1 en"]
    assert rows[0][5:] == ["2026-11-20 10:05", "20", "4 exams", "complete"]
    assert rows[1][-3:] == ["15", "4 exams", "incomplete"]
    headers, *rows = found.tables["By discipline"]
    assert headers == ["Discipline", "n", "Chance", "longest", "zero_shot"]
    assert [row[:3] for row in rows] == [["biology", "8 to 10", "22.5"], ["medicine", "7 to 10", "22.5"]]
    assert len(found.tables["By exam"]) == 5
    assert found.tables["Failed questions"][1][:3] == ["zero_shot", "network", "LMTransportError"]
    assert {"Scores on the same questions", "Against longest", "Settings"} <= found.tables.keys()
    assert any("zero_shot: Incomplete: 15 of 20 questions scored" in text for text in found.texts["p"])
    assert "Plots are left out: plots need matplotlib: pip install 'medexam[plots]'" in found.texts["p"]


def test_one_run_has_its_own_figures_and_no_comparison(page, two_runs) -> None:
    found = page(two_runs[0])
    assert not [each for each in found.named("details") if "comparison" in (each.get("id") or "")]
    assert found.tables["By discipline"][0][:4] == ["Discipline", "n", "Right", "Wrong"]


def test_a_cell_holds_its_number_and_the_ends_of_its_interval(page, two_runs) -> None:
    report = medexam.report(*two_runs)
    cells = [each for each in page(*two_runs).named("td") if "data-low" in each]
    for run in report.document():
        accuracy = run["metrics"]["measures"]["accuracy"]
        numbers = [accuracy["value"], *accuracy["interval"]]
        written = [[float(cell[f"data-{end}"] or "nan") for end in ("value", "low", "high")] for cell in cells]
        assert pytest.approx([100 * number for number in numbers], rel=1e-5) in written


def test_what_all_runs_say_stands_once(page, make_run) -> None:
    said = "The server cut the prompts."
    runs = [make_run({"kind": "blind", "option": option}, "rw", warnings=(said,)) for option in (1, 2, 3)]
    (warning,) = [text for text in page(*runs).texts["p"] if said in text]
    assert warning == f"Warning: {said}"


def test_the_page_loads_nothing_and_runs_its_own_scripts_only(page, two_runs) -> None:
    found = page(*two_runs)
    for _, attributes in found.elements:
        assert not [name for name in attributes if name.startswith("on")]
        assert "style" not in attributes
        for name in ("src", "href", "data", "action"):
            assert (attributes.get(name) or "#").startswith(("#", "data:image/png;base64,"))
    assert not {"link", "iframe", "object", "base", "form"} & {tag for tag, _ in found.elements}
    (policy,) = (each["content"] for each in found.named("meta") if "http-equiv" in each)
    scripts = [text for text in found.texts["script"] if "use strict" in text]
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in scripts]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert f"script-src {' '.join(hashes)}; img-src data:;" in policy
    assert "unsafe" not in policy
    for text in scripts:
        for forbidden in ("innerHTML", "insertAdjacentHTML", "document.write", "eval(", "fetch("):
            assert forbidden not in text


def test_hostile_names_and_messages_stay_text(page, make_run, two_runs) -> None:
    plain = [each for each in page(two_runs[1]).named("script") if "id" not in each]
    failure = Failure(kind=HOSTILE, message=HOSTILE)
    run = make_run(
        ZERO_SHOT,
        "fffru",
        model={"engine": "litellm", "name": HOSTILE},
        environment={"engine": {"engine": "litellm", "model": HOSTILE.replace("/", "")}, "host": HOSTILE},
        warnings=(HOSTILE,),
        extra=lambda question: {"reply": HOSTILE} if question.number > 3 else {"failure": failure},
    )
    found = page(run)
    assert len([each for each in found.named("script") if "id" not in each]) == len(plain)
    assert len(found.named("img")) == sum("data:" in (each["src"] or "") for each in found.named("img"))
    assert any(HOSTILE in text for text in found.texts["p"])
    assert ["ran.host", HOSTILE] in found.tables["Settings"]
    assert HOSTILE in found.tables["Failed questions"][1]


def test_every_question_is_there_with_what_each_run_answered(page, make_run, two_runs) -> None:
    narrow = make_run({"kind": "random"}, "o", years=[2015])
    data = page(*two_runs, narrow).data
    index, items = data["index"], data["questions"]
    assert [run["name"] for run in index["runs"]] == ["longest", "zero_shot", "random"]
    outcomes = [run["outcomes"] for run in index["runs"]]
    keys = [
        f"headqa-v1/{year}/{category}/{number}"
        for category in ("biology", "medicine")
        for year in (2013, 2015)
        for number in range(1, 6)
    ]
    at = {item["key"]: place for place, item in enumerate(items)}
    assert sorted(at) == sorted(keys)
    assert outcomes[1] == "rwufrrmrwufrrmrwufrr"[: len(keys)]
    assert set(outcomes[2]) == {"-", "w"}
    discipline, year = index["facets"]
    for key in keys:
        _, when, category, number = key.split("/")
        assert (discipline["of"][at[key]], str(year["of"][at[key]])) == (category, when)
        (wording,) = items[at[key]]["wordings"]
        assert wording["stem"] == f"Which is it, {category} {when} number {number}?"
        assert wording["gold"] == gold_of(int(number))
        assert [number for number, _ in wording["options"]] == list(range(1, 6 if when == "2013" else 5))
        assert (items[at[key]]["answers"][2] is None) is (when == "2013")
    first, third, fourth, seventh = (items[place]["answers"][1] for place in (0, 2, 3, 6))
    assert (first["answer"], first["reply"]) == (items[0]["wordings"][0]["gold"], f"{{Answer: {first['answer']}}}")
    assert (third["status"], third["reply"]) == ("unanswered", "I would say | ```\nthe first")
    assert fourth["failure"] == "LMTransportError: connection refused"
    assert seventh == {"wording": 0}


def test_scores_and_passages_of_an_answer_are_kept_to_six_digits_and_long_replies_lose_their_middle(
    page, make_run
) -> None:
    def fields(question) -> dict:
        return {
            "option_scores": {1: -1.23456789, 2: -98.7654321, 3: -9.0, 4: -9.0},
            "score_unit": "nats per token",
            "score_norm": "token_mean",
            "passages": (RetrievedPassage(id="p1", source="Book", score=12.3456789),),
            "reply": "a" * 300_000 + "b" * 300_000 + " {Answer: 1} ☃ </script>",
        }

    answer = page(make_run(ZERO_SHOT, "r", years=[2015], extra=fields)).data["questions"][0]["answers"][0]
    assert answer["scores"][:2] == [[1, -1.23457], [2, -98.7654]]
    assert (answer["score_unit"], answer["passages"]) == ("nats per token", [["p1", "Book", 12.3457]])
    assert answer["reply"].startswith("a" * 100)
    assert answer["reply"].endswith("bb {Answer: 1} ☃ </script>")
    assert re.search(r"\d+ characters are left out", answer["reply"])


def test_a_question_in_two_languages_has_two_wordings(page, make_run) -> None:
    data = page(make_run(LONGEST, "r"), make_run(LONGEST, "w", language="es")).data
    item = data["questions"][0]
    assert [wording["language"] for wording in item["wordings"]] == ["en", "es"]
    assert [answer["wording"] for answer in item["answers"]] == [0, 1]
    english, spanish = (wording["stem"] for wording in item["wordings"])
    assert (english.split(",")[0], spanish.split(",")[0]) == ("Which is it", "Cuál es")
    assert [run["name"] for run in data["index"]["runs"]] == ["longest en", "longest es"]


def test_a_copy_without_the_data_set_makes_the_same_page(page, make_run, exam_files) -> None:
    run = make_run(ZERO_SHOT, "rrw")
    before = page(run).data
    shutil.rmtree(exam_files)
    (run / "metrics.json").unlink()
    copied = shutil.copytree(run, run.with_name("other"))
    after = page(copied).data
    for data in (before, after):
        del data["index"]["runs"][0]["folder"]
    assert after == before
    both = page(run, copied)
    assert not any("cannot be compared" in text for text in both.texts["p"])


def test_a_page_that_cannot_be_written_is_one_line(two_runs, tmp_path) -> None:
    with pytest.raises(RunFolderError, match=r"cannot write .*; choose another file with --html") as raised:
        medexam.report(two_runs[0], html=tmp_path / "no" / "such" / "page.html")
    assert "\n" not in str(raised.value)


@pytest.mark.nightly
def test_of_very_many_questions_some_are_shown_and_all_count(page, tmp_path) -> None:
    rows = [
        {"id": f"q{n}", "stem": f"Which, {n}?", "options": ["a" if n % 40 else "aaa", "bb"], "answer": 2}
        for n in range(21_000)
    ]
    (tmp_path / "own.jsonl").write_text("\n".join(map(json.dumps, rows)))
    dataset = {"kind": "choice", "path": str(tmp_path / "own.jsonl"), "columns": {"numbering": "one"}}
    spec = {"name": "own", "dataset": dataset, "matrix": {"program": ["longest", {"kind": "blind", "option": 2}]}}
    runs = medexam.run(spec, runs_dir=tmp_path / "runs", track=False, progress=False)
    found = page(*(run.folder for run in runs))
    index, shown = found.data["index"], found.data["questions"]
    longest, blind = index["every"]
    flipped = {rows[at]["id"] for at in range(21_000) if longest[at] != blind[at]}
    assert 0 < len(flipped) < len(shown) == 20_000
    assert flipped <= {item["key"] for item in shown}
    assert blind == "r" * 21_000
    assert longest.count("r") == runs[0].stored.metrics.right
    (note,) = [text for text in found.texts["p"] if "questions are shown" in text]
    assert note.startswith(f"20,000 of 21,000 questions are shown: all of the {len(flipped):,} that only some runs")
    alone = page(runs[0].folder)
    assert any(text.startswith("20,000 of 21,000 questions are shown, drawn evenly.") for text in alone.texts["p"])


# The conversations, of real runs over the scripted engine.


@pytest.fixture
def runs_of(tmp_path, monkeypatch):
    """`runs_of([program, ...], reply)` -> folders of runs of four questions."""
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))

    def carry_out(programs, reply="{Answer: 1}"):
        (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": reply}))
        model = {"engine": "scripted", "path": str(tmp_path / "replies.yaml"), "temperature": 0.7}
        dataset = {"name": "headqa_sample", "limit": 4}
        spec = {"name": "shown", "dataset": dataset, "model": model, "matrix": {"program": programs}}
        return [run.folder for run in medexam.run(spec, runs_dir=tmp_path / "runs", track=False, progress=False)]

    return carry_out


def test_a_question_shows_what_each_call_sent_and_received(page, runs_of) -> None:
    programs = [ZERO_SHOT, {"kind": "few_shot"}, {"kind": "zero_shot", "samples": 3}, LONGEST]
    found = page(*runs_of(programs))
    turns_of = found.data["turns"]
    for item in found.data["questions"]:
        zero_shot, few_shot, voted, longest = item["answers"]
        (call,) = zero_shot["calls"]
        turns = [turns_of[place] for place in call["turns"]]
        assert [role for role, _ in turns] == ["system", "user", "user"]
        (wording,) = item["wordings"]
        assert wording["stem"] in turns[-1][1]
        assert all(f"{number}. {text}" in turns[-1][1] for number, text in wording["options"])
        assert call["reply"] == "{Answer: 1}"
        assert len(few_shot["calls"][0]["turns"]) > len(call["turns"])
        assert [one["reply"] for one in voted["calls"]] == ["{Answer: 1}"] * 3
        assert "calls" not in longest
    assert len(turns_of) == len({tuple(turn) for turn in turns_of}), "what prompts share stands once"
    assert not [text for text in found.texts["p"] if "No prompts" in text]


@pytest.mark.parametrize(
    "program",
    [
        {"kind": "chain_of_thought", "answer_format": "guided"},
        {"kind": "zero_shot", "orders": "cyclic"},
        {"kind": "retrieve_then_answer", "retriever": {"kind": "bm25", "corpus": str(CORPUS)}},
    ],
)
def test_of_a_question_that_failed_the_first_prompt_is_shown(page, runs_of, program) -> None:
    data = page(*runs_of([program], {"error": "server"})).data
    for item in data["questions"]:
        (call,) = item["answers"][0]["calls"]
        assert item["wordings"][0]["stem"] in data["turns"][call["turns"][-1]][1]
        assert call.get("reply") is None
