"""`medexam cliniqlink run` with a stand-in for podman."""

import json
import os
import sys
from pathlib import Path

import pytest
from task_data import write_cliniqlink

STAND_IN = f"""#!{sys.executable}
import os, sys
words = sys.argv[1:]
if words[0] != "run":
    sys.exit(0)
paths, place = {{}}, 1
while words[place].startswith("--"):
    name = words[place]
    value = None if name == "--rm" else words[place + 1]
    if name == "--volume":
        host, inside, _ = value.split(":")
        paths[inside] = host
    elif name == "--env":
        key, _, text = value.partition("=")
        os.environ[key] = paths.get(text, text)
    place += 1 if value is None else 2
command = words[place + 1 :]
for inside, host in paths.items():
    command = [word.replace(inside, host) for word in command]
os.execvp(command[0], command)
"""
"""Runs the command on this machine, in the folders that are mounted, instead of a container."""
ANSWER = """
import json, os, pathlib
names = {"TF": "true_false", "MC": "multiple_choice"}
for file in pathlib.Path(os.environ["DATA_DIR"]).glob("*.json"):
    items = json.loads(file.read_text())
    print(file.read_text())
    output = pathlib.Path(os.environ["OUTPUT_DIR"], names.get(file.stem, file.stem) + ".json")
    output.write_text(json.dumps({"inputs": items, "responses": ["True"] * len(items)}))
print(os.environ["TEAM"], os.environ["EXTRA_SUBMIT_ARGS"])
"""
"""A participant's program, which says True to all."""


@pytest.fixture
def engines(tmp_path, monkeypatch) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "podman").write_text(STAND_IN)
    (tools / "podman").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.model
@pytest.mark.usefixtures("engines")
def test_a_container_answers_without_seeing_the_right_answers_and_is_scored(medexam, tmp_path) -> None:
    pytest.importorskip("sentence_transformers")
    data = write_cliniqlink(tmp_path / "questions")
    options = ("--engine", "podman", "--data", data, "--env", "TEAM=one", "--out", "teams/one")
    code, _, err = medexam("cliniqlink", "run", "image", *options, "--", sys.executable, "-c", ANSWER)
    assert (code, err) == (0, "medexam: medexam cliniqlink score teams/one\n")
    log = Path("teams/one.log").read_text()
    assert "one --data_dir /data --output_dir /results --num_tf 2 --num_mc 1" in log
    for hidden in ("Benign prostatic", "0.3 units", "Resistance develops", "no link", "correct_answer"):
        assert hidden not in log
    for shown in ("What is BPH?", "0.05 units", "Cycloplegia.", "Step 3: it must be.", "Spleen"):
        assert shown in log
    account = json.loads(Path("teams/one.json").read_text())
    assert (account["code"], account["missing"], account["variables"]) == (0, [], ["TEAM"])
    code, out, err = medexam("cliniqlink", "score", "teams/one", "--data", data, "--json")
    assert json.loads(out)[0]["metrics"]["by"]["group"]["true_false"]["measures"]["published"]["value"] == 0.5
    assert "another right answer" not in err
