"""`medexam report --layout bibtex`: what stored runs cite."""

import json
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[4]


def test_it_cites_the_data_the_harness_and_what_ran_and_makes_nothing_up(medexam) -> None:
    for kind in ("longest", "random"):
        asked = ("run", "headqa_sample", "--set", f"program.kind={kind}", "--limit", 30, "--json")
        (document,) = json.loads(medexam(*asked)[1])
    asked = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    code, text, err = medexam("report", "--layout", "bibtex")
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
    models = {name: {"identity": identity} for name, identity in (("a", one), ("b", other))}
    (folder / "models.json").write_text(json.dumps(models))
    _, text, err = medexam("report", folder, "--layout", "bibtex")
    hub = (r"title = {{some/Model\_8B}}", f"revision {commit}", "huggingface.co/some/Model_8B")
    assert all(cited in text for cited in (*hub, "{{openai/gpt}}", "note = {vllm 0.32.0}")), err
    for key in ("kwon2023efficient", "khattab2024dspy", "litellm", "lhoest2021datasets", "douze2024faiss"):
        assert f"{{{key}," in text
    assert "% no known reference: encoder /models/mine" in text
