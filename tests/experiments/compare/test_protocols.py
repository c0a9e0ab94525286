"""What a run's protocol says, and where those of two runs differ."""

from pathlib import Path

import pytest

from medexam.companions.harnesses.imports.importing import Importer
from medexam.datasets import load_exam_set
from medexam.experiments import compare_runs, current_run, find_runs
from medexam.experiments.compare.further import find_further
from medexam.experiments.entry.report import Report
from medexam.experiments.store.protocol import NOT_TOLD, read_protocol
from medexam.specs import DatasetSpec
from stored_runs import write_run

LOGS = Path(__file__).parents[2] / "companions" / "harnesses" / "imports" / "logs"
STUDY = Path(__file__).parents[2] / "earlier_runs" / "home" / "runs"


@pytest.fixture(scope="module")
def exams():
    return load_exam_set(DatasetSpec(name="headqa_sample"))


@pytest.fixture
def importer(tmp_path):
    return Importer(DatasetSpec(name="headqa_sample"), tmp_path / "imported")


def _protocol(run):
    return read_protocol(run.record, run.environment)


def test_two_programs_of_one_model_differ_where_they_differ(exams, tmp_path) -> None:
    model = {"engine": "vllm", "name": "a/b", "endpoints": ["http://127.0.0.1:1/v1"]}
    folders = [
        write_run(
            tmp_path / str(temperature),
            exams,
            {"kind": "zero_shot", "answer_format": answer_format},
            lambda question, gold: {"status": "answered", "answer": gold},
            model={**model, "temperature": temperature},
        )
        for answer_format, temperature in (("free", 0.0), ("guided", 0.5))
    ]
    found = compare_runs(folders, finders=find_further(protocol=True))
    (section,) = found.sections
    assert section.differing == ["program", "answer", "decoding"]
    (table, _), *_ = section.tables(found.names)
    rows = {row[0]: row[1:] for row in table.rows}
    read_by = "reader answer 2, reader lenient 2, reader thinking 2"
    assert rows["answer"] == tuple(
        f"answer format: {answer_format}, answer form: braces, {read_by}" for answer_format in ("free", "guided")
    )
    assert rows["decoding"][1].startswith("temperature 0.5, max_tokens 64")
    assert "The runs differ in program, answer, decoding: any of these may explain a difference." in section.sentences(
        found.names
    )
    document = found.document()["protocol"]
    assert document["differing"] == section.differing
    assert [one["questions"][:4] for one in document["runs"].values()] == ["120,", "120,"]


def test_a_prompt_that_changes_has_another_digest() -> None:
    protocols = {
        folder.name: read_protocol(folder.read_record(), folder.read_environment()) for folder in find_runs([STUDY])
    }
    assert all(list(one) == list(next(iter(protocols.values()))) for one in protocols.values())
    asked = {name: one["prompt"] for name, one in protocols.items() if one["prompt"] != "none"}
    assert len(set(asked.values())) > 1


@pytest.mark.parametrize(
    ("file", "measure", "told"),
    [
        (
            "samples_headqa_en_2*.jsonl",
            "acc_norm",
            {
                "harness": "lm-evaluation-harness 0.4.13",
                "model": "SmolLM2-135M-Instruct",
                "normalisation": "per character",
                "answer": "acc_norm, the likeliest option",
                "demonstrations": "none",
                "decoding": "none",
            },
        ),
        (
            "samples_headqa_en_letters_*.jsonl",
            "exact_match-strict-match",
            {
                "normalisation": "ignore case, ignore punctuation",
                "decoding": "until ['\\n'], max_gen_toks 8, do_sample False",
            },
        ),
        (
            "inspect_headqa.eval",
            "choice-epoch-1",
            {
                "harness": "Inspect 0.3.285",
                "answer": "scorer choice",
                "their data": "name headqa, samples 10, shuffled False",
                "demonstrations": NOT_TOLD,
            },
        ),
    ],
)
def test_an_imported_run_tells_what_its_files_say(importer, file, measure, told) -> None:
    (path,) = LOGS.glob(file)
    (one,) = importer.take(path, print, measure)
    found = _protocol(one.run)
    assert {name: found[name] for name in told} == told
    assert found["prompt"] != NOT_TOLD


def test_a_plain_table_tells_nothing_and_nobody_guesses(importer, tmp_path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("question,answer\nheadqa-v1/2013/biology/8,2\n")
    (one,) = importer.take(path, print)
    found = _protocol(one.run)
    assert {name for name, said in found.items() if said == NOT_TOLD} == {
        *("model", "prompt", "demonstrations", "passages", "normalisation", "decoding", "their data")
    }
    (document,) = Report([one.run], protocol=True).document()
    assert document["protocol"] == found
    assert "| harness | table, version not told |" in Report([one.run], protocol=True).markdown()


def test_runs_of_the_same_protocol_have_no_table(exams, tmp_path) -> None:
    folders = [
        write_run(tmp_path / name, exams, {"kind": "random"}, lambda question, _: {"status": "answered", "answer": 1})
        for name in "ab"
    ]
    found = compare_runs([*folders], finders=find_further(protocol=True))
    assert found.sections[0].tables(found.names) == []
    assert found.sections[0].sentences(found.names)[0] == "The runs' protocols do not differ."
    assert "Protocol: random" not in repr(Report([current_run(folders[0], print)]))
