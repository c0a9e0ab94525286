"""What a program asks with is told by content: a name, a place or a stamp counts for nothing, a changed word does."""

import asyncio
import json
import shutil
from importlib import resources
from pathlib import Path

import pytest
import yaml

from medexam.errors import RunFolderError, SpecError
from medexam.experiments import plan_experiment
from medexam.experiments.plan.nearest_demonstrations import NearestDemonstrations
from medexam.experiments.plan.words import describe_words
from medexam.experiments.run.workers.messages import Assignment, LookedUp
from medexam.experiments.run.workers.worker import Worker
from medexam.programs import WithNearest, build_program, save_program
from medexam.specs import CellSpec, ZeroShotSpec
from retrievers.tiny_models import save_bert
from task_data import write_casimedicos

WORDS = resources.files("medexam.signatures") / "words"
CORPUS = Path(__file__).parents[2] / "retrievers" / "corpus_sample" / "passages.jsonl.gz"


@pytest.fixture
def digest(tmp_path):
    """`digest({"program.k": 3})` -> the digest of a run of few-shot prompting on the sample with these settings."""
    replies = tmp_path / "replies.yaml"
    replies.write_text(yaml.safe_dump({"*": "{Answer: 1}"}))
    document = {
        "name": "x",
        "dataset": {"name": "headqa_sample", "limit": 3},
        "model": {"engine": "scripted", "path": str(replies)},
        "program": {"kind": "few_shot"},
    }

    def known(overrides, kind="few_shot"):
        program = {"program": {"kind": kind}} if kind != "few_shot" else {}
        return plan_experiment(document, {**program, **overrides}, runs_dir=tmp_path / "runs").cells[0].spec_digest

    return known


@pytest.mark.parametrize(("key", "shipped"), [("prompt", "paper"), ("examples", "paper_examples")])
def test_a_files_name_and_line_breaks_count_for_nothing_and_its_words_do(digest, tmp_path, key, shipped) -> None:
    text = (WORDS / f"{shipped}.yaml").read_text(encoding="utf-8")
    copy, breaks, moved, other = (tmp_path / name for name in ("copy.yaml", "breaks.yaml", "moved.yaml", "other.yaml"))
    copy.write_text(text)
    breaks.write_bytes(text.replace("\n", "\r\n").encode())
    document = yaml.safe_load(text)
    moved.write_text(yaml.safe_dump(dict(reversed(document.items())), allow_unicode=True))
    if key == "prompt":
        document["en"]["few_shot"] += " Take care."
    else:
        document["en"][0]["stem"] += " "
        document["en"][0]["options"][0] += "!"
    other.write_text(yaml.safe_dump(document, allow_unicode=True))
    same = {digest({}), *(digest({f"program.{key}": str(path)}) for path in (copy, breaks, moved))}
    assert len(same) == 1
    assert digest({f"program.{key}": str(other)}) not in same


def _save(path: Path, question, encoder: str, *, k: int = 1, said: str = "Answer.", pool: int = 2) -> Path:
    spec = ZeroShotSpec(kind="zero_shot")
    program = build_program(spec, "en")
    (predictor,) = program.predictors()
    predictor.signature = predictor.signature.with_instructions(said)
    demos = [question.model_copy(update={"key": f"other/{number}"}) for number in range(pool)]
    predictor.demos = [build_demo(demo) for demo in demos]
    path.mkdir(parents=True)
    save_program(
        WithNearest(program, NearestDemonstrations(predictor.demos, k, encoder)), path / "program.json", spec, "en"
    )
    return path


def build_demo(question):
    import dspy

    return dspy.Example(question=question, answer=2).with_inputs("question")


def test_a_loaded_program_counts_whole(digest, question, tmp_path) -> None:
    pytest.importorskip("sentence_transformers")
    encoder, moved_encoder = save_bert(tmp_path / "encoder", 1), tmp_path / "elsewhere"
    shutil.copytree(encoder, moved_encoder)
    other_encoder = save_bert(tmp_path / "again" / "encoder", 2)

    def of(path):
        return digest({"program.load": str(path)}, kind="zero_shot")

    first = _save(tmp_path / "first", question, str(encoder))
    known = of(first)
    moved = tmp_path / "moved" / "renamed.json"
    moved.parent.mkdir()
    state = json.loads((first / "program.json").read_text())
    state["metadata"]["dependency_versions"] = {"python": "9", "dspy": "9"}
    state["program.respond"]["demos"][0]["augmented"] = True
    moved.write_text(json.dumps(dict(reversed(state.items()))))
    assert of(moved) == known
    assert of(_save(tmp_path / "same", question, str(moved_encoder))) == known
    others = [
        _save(tmp_path / "k", question, str(encoder), k=2),
        _save(tmp_path / "encoded", question, str(other_encoder)),
        _save(tmp_path / "said", question, str(encoder), said="Answer!"),
        _save(tmp_path / "pool", question, str(encoder), pool=3),
    ]
    assert len({known, *map(of, others)}) == 5
    # The words of the prompt are not asked with.
    own = tmp_path / "own.yaml"
    own.write_text(yaml.safe_dump({"en": {"zero_shot": "Unused. $form"}}))
    assert digest({"program.load": str(first), "program.prompt": str(own)}, kind="zero_shot") == known


def test_a_damaged_loaded_program_is_one_line(digest, question, tmp_path) -> None:
    place = _save(tmp_path / "first", question, "minilm")
    state = json.loads((place / "program.json").read_text())
    del state["program.respond"]["signature"]
    (place / "program.json").write_text(json.dumps(state))
    with pytest.raises(SpecError, match="is damaged") as caught:
        digest({"program.load": str(place)}, kind="zero_shot")
    assert "\n" not in str(caught.value)


def test_the_file_of_the_questions_that_are_looked_up_counts(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MEDEXAM_DATA", str(tmp_path))
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))
    folder = write_casimedicos(tmp_path / "casimedicos", "en", "es")

    def digest(**program):
        retriever = {"kind": "bm25", "corpus": str(CORPUS)}
        document = {
            "name": "x",
            "dataset": {"name": "casimedicos"},
            "program": {"kind": "relevance", "retriever": retriever, **program},
        }
        return plan_experiment(document, {}, runs_dir=tmp_path / "runs").cells[0].spec_digest

    plain, crossed = digest(), digest(query_language="es")
    assert digest(query_language="en") == plain != crossed
    translated = folder / "ES" / "test.tsv"
    translated.write_text(translated.read_text().replace("coughs", "sneezes"))
    assert digest() == plain
    assert digest(query_language="es") != crossed


def test_a_worker_that_finds_other_words_asks_nothing(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    prompt = tmp_path / "prompt.yaml"
    prompt.write_text(yaml.safe_dump({"en": {"zero_shot": "Answer. $form"}}))
    cell = CellSpec.model_validate({"name": "x", "program": {"kind": "zero_shot", "prompt": str(prompt)}})
    assignment = Assignment(cell, "d" * 12, None, tmp_path, describe_words(cell.program, "en"))
    prompt.write_text(yaml.safe_dump({"en": {"zero_shot": "Answer! $form"}}))
    with pytest.raises(RunFolderError, match="reads other prompts") as caught:
        asyncio.run(Worker("shard", str(tmp_path), 1).begin(assignment, LookedUp(None, {})))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "parts").exists()
