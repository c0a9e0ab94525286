"""`--bibtex`: what a paper on stored runs cites, with nothing made up."""

from pathlib import Path

import pytest
import yaml

from medexam.experiments import RunFolder
from medexam.experiments.report.papers.bibliography import read_references, render_bibtex
from medexam.specs import library_names, load_document
from medexam.specs.catalogue import CATALOGUE

ROOT = Path(__file__).parents[2]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize("command", [("report",), ("compare",), ("board",)])
def test_report_compare_and_board_cite_the_data_and_the_harness(medexam, tmp_path, command) -> None:
    for kind in ("longest", "random"):
        medexam("run", "headqa_sample", "--set", f"program.kind={kind}", "--limit", 30)
    code, _, err = medexam(*command, "--bibtex", "refs.bib")
    text = (tmp_path / "refs.bib").read_text()
    assert code == 0, err
    assert text.count("@") == text.count("\n}")
    assert "@inproceedings{vilares2019headqa," in text
    assert "@misc{medexam," in text
    assert "dspy" not in text
    assert ("zaharia2018mlflow" in text) == ("% MLflow was installed" in text)
    assert medexam(*command, "--latex", "refs.bib")[0] == 2


def test_a_model_is_cited_by_hub_id_or_name_and_packages_by_the_versions_that_ran(medexam, tmp_path) -> None:
    medexam("run", "headqa_sample", "--set", "program.kind=longest", "--limit", 30)
    (path,) = (tmp_path / "runs").glob("headqa_sample-*")
    folder = RunFolder(path)
    document = folder.read_json("spec.json")
    document["cell"]["program"] = {
        "kind": "retrieve_then_answer",
        "retriever": {"kind": "fusion", "encoder": "/models/mine"},
    }
    folder.write_json("spec.json", document)
    engine = {"engine": "vllm", "model": "m", "server_version": "vllm 0.32.0"}
    folder.write_json("environment.json", {**folder.read_environment(), "engine": engine})
    one = {"engine": "vllm", "name": "m", "hub_id": "some/Model_8B", "commit": COMMIT}
    other = {"engine": "litellm", "name": "openai/gpt"}
    models = {name: {"identity": identity, "since": "2026-11-20"} for name, identity in (("a", one), ("b", other))}
    folder.write_json("models.json", models)
    text = render_bibtex([folder])
    hub = (r"title = {{some/Model\_8B}}", f"revision {COMMIT}", "huggingface.co/some/Model_8B")
    assert all(cited in text for cited in (*hub, "{{openai/gpt}}"))
    for key in ("kwon2023efficient", "khattab2024dspy", "litellm", "lhoest2021datasets", "douze2024faiss"):
        assert f"{{{key}," in text
    assert "note = {vllm 0.32.0}" in text
    assert "% no known reference: encoder /models/mine" in text


def test_every_data_set_with_a_published_paper_has_its_reference() -> None:
    citations = {entry.name: entry.citation for entry in CATALOGUE.values()}
    for name in library_names():
        data = load_document(name).get("dataset")
        if isinstance(data, dict) and "published" in data:
            citations[name] = " ".join(data["published"]["citation"].split())
    known = [fields.get("cited_as", fields["title"]) for fields in read_references().values()]
    unknown = [name for name, citation in citations.items() if not any(title in citation for title in known)]
    assert unknown == ["med_ita"]


def test_the_harness_is_cited_as_it_asks() -> None:
    asked = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    cited = read_references()["medexam"]
    assert (cited["title"], cited["author"]) == (asked["title"], f"{{{asked['authors'][0]['name']}}}")
