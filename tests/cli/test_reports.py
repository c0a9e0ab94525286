"""What `medexam report` splits and cites."""

import json
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
LONGEST = ("--set", "program.kind=longest", "--limit", 60)


def _groups(breakdown: dict) -> list[tuple[str, int]]:
    return [(group["value"], group["n"]) for group in breakdown["groups"]]


@pytest.fixture
def by(medexam):
    """`by("year", ...)`: the documents of `medexam report --json`, split by these columns."""

    def call(*columns: str) -> list[dict]:
        flags = [word for column in columns for word in ("--by", column)]
        code, out, err = medexam("report", *flags, "--json")
        assert code == 0, err
        return json.loads(out)

    return call


def test_each_column_splits_the_same_questions_and_right_answers(run, medexam, refused, by, tmp_path) -> None:
    run("headqa_sample", *LONGEST)
    columns = ("discipline", "year", "negation", "length", "numbers", "picture", "options")
    (document,) = by(*columns)
    assert [breakdown["column"] for breakdown in document["by"]] == list(columns)
    for breakdown in document["by"]:
        groups = breakdown["groups"]
        assert sum(group["n"] for group in groups) == 60
        right = sum(group["score"] * group["n"] for group in groups)
        assert right == pytest.approx(document["metrics"]["right"])
        assert all(group["interval"][0] <= group["score"] <= group["interval"][1] for group in groups)
    by_discipline = {group["value"]: group["score"] for group in document["by"][0]["groups"]}
    assert by_discipline == {name: one["accuracy"] for name, one in document["metrics"]["by_discipline"].items()}
    medexam("report", *(word for column in columns for word in ("--by", column)), "--markdown", "r.md")
    text = (tmp_path / "r.md").read_text()
    assert all(f"By {column}" in text for column in columns)
    line = refused("report", "--by", "colour")
    assert all(name in line for name in ("discipline", "negation", "FILE:COLUMN"))


def test_a_column_of_a_file_is_joined_by_key_and_the_rest_is_a_group_of_its_own(run, refused, by, tmp_path) -> None:
    (document,) = run("headqa_sample", *LONGEST)
    first, second, *_ = json.loads(Path(document["run_dir"], "spec.json").read_text())["questions"]
    (tmp_path / "topics.csv").write_text(f"question,specialty\n{first},heart\n{second},lung\n")
    assert _groups(by("topics.csv:specialty")[0]["by"][0]) == [("heart", 1), ("lung", 1), ("-", 58)]
    assert "its columns are question, specialty" in refused("report", "--by", "topics.csv:topic")


def test_an_exam_and_its_open_setting_are_split_by_the_same_values(run, by, spec) -> None:
    run("headqa_sample", *LONGEST)
    spec("some words")
    run("headqa_open", "--set", "model={engine: scripted, path: replies.yaml}", "--limit", 60)
    documents = {each["dataset"]: each["by"] for each in by("discipline", "options", "year")}
    assert [*map(_groups, documents["headqa_sample"])] == [*map(_groups, documents["headqa_sample_open"])]


def test_bibtex_cites_the_data_the_harness_and_what_ran_and_makes_nothing_up(run, medexam, tmp_path) -> None:
    for kind in ("longest", "random"):
        (document,) = run("headqa_sample", "--set", f"program.kind={kind}", "--limit", 30)
    asked = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    for command in ("report", "compare", "board"):
        code, _, err = medexam(command, "--bibtex", "refs.bib")
        text = (tmp_path / "refs.bib").read_text()
        assert code == 0, err
        assert text.count("@") == text.count("\n}")
        assert "@inproceedings{vilares2019headqa," in text
        assert all(word in text for word in ("@misc{medexam,", asked["title"], asked["authors"][0]["name"]))
        assert "dspy" not in text
    folder, commit = Path(document["run_dir"]), "0123456789abcdef0123456789abcdef01234567"
    record = json.loads((folder / "spec.json").read_text())
    retriever = {"kind": "fusion", "encoder": "/models/mine"}
    record["cell"]["program"] = {"kind": "retrieve_then_answer", "retriever": retriever}
    (folder / "spec.json").write_text(json.dumps(record))
    engine = {"engine": "vllm", "model": "m", "server_version": "vllm 0.32.0"}
    environment = json.loads((folder / "environment.json").read_text())
    (folder / "environment.json").write_text(json.dumps(environment | {"engine": engine}))
    one = {"engine": "vllm", "name": "m", "hub_id": "some/Model_8B", "commit": commit}
    other = {"engine": "litellm", "name": "openai/gpt"}
    models = {name: {"identity": identity, "since": "2026-11-20"} for name, identity in (("a", one), ("b", other))}
    (folder / "models.json").write_text(json.dumps(models))
    code, _, err = medexam("report", folder, "--bibtex", "refs.bib")
    text = (tmp_path / "refs.bib").read_text()
    hub = (r"title = {{some/Model\_8B}}", f"revision {commit}", "huggingface.co/some/Model_8B")
    assert all(cited in text for cited in (*hub, "{{openai/gpt}}", "note = {vllm 0.32.0}")), err
    for key in ("kwon2023efficient", "khattab2024dspy", "litellm", "lhoest2021datasets", "douze2024faiss"):
        assert f"{{{key}," in text
    assert "% no known reference: encoder /models/mine" in text
