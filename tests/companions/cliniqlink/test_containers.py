"""`medexam cliniqlink run` with a stand-in for the engines, and what the real ones are told."""

import json
import os
import sys
from pathlib import Path

import pytest

from medexam.companions.cliniqlink.container import ContainerJob, Engine
from medexam.errors import SpecError
from task_data import write_cliniqlink

STAND_IN = f"""#!{sys.executable}
import os, sys
words = sys.argv[1:]
if words[0] not in ("run", "exec"):
    sys.exit(0)
paths, place = {{}}, 1
while words[place].startswith("--"):
    name = words[place]
    flags = ("--rm", "--containall", "--cleanenv", "--no-home", "--writable-tmpfs", "--net", "--no-privs", "--nv")
    value = None if name in flags else words[place + 1]
    if name in ("--volume", "--bind"):
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
    output = pathlib.Path(os.environ["OUTPUT_DIR"], names.get(file.stem, file.stem) + ".json")
    output.write_text(json.dumps({"inputs": items, "responses": ["True"] * len(items)}))
print(os.environ["TEAM"], os.environ["EXTRA_SUBMIT_ARGS"])
"""
"""A participant's program, which says True to all."""


@pytest.fixture
def engines(tmp_path, monkeypatch) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("podman", "apptainer"):
        (tools / name).write_text(STAND_IN)
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.model
@pytest.mark.usefixtures("engines")
@pytest.mark.parametrize("engine", ["podman", "apptainer"])
def test_a_container_answers_and_is_scored(medexam, tmp_path, engine: str) -> None:
    pytest.importorskip("sentence_transformers")
    data = write_cliniqlink(tmp_path / "questions")
    options = ("--engine", engine, "--data", data, "--env", "TEAM=one", "--out", "teams/one")
    code, _, err = medexam("cliniqlink", "run", "image", *options, "--", sys.executable, "-c", ANSWER)
    assert code == 0, err
    assert err == "medexam: medexam cliniqlink score teams/one\n"
    log = Path("teams/one.log").read_text()
    assert log.startswith("one --data_dir /data --output_dir /results --num_tf 2 --num_mc 1")
    account = json.loads(Path("teams/one.json").read_text())
    assert (account["code"], account["missing"], account["variables"]) == (0, [], ["TEAM"])
    code, out, err = medexam("cliniqlink", "score", "teams/one", "--data", data, "--json")
    assert json.loads(out)[0]["metrics"]["by_group"]["true_false"]["published"]["value"] == 0.5
    assert "another right answer" not in err


@pytest.mark.usefixtures("engines")
def test_a_container_sees_no_right_answers(medexam, tmp_path) -> None:
    data = write_cliniqlink(tmp_path / "questions")
    show = "import pathlib, os; [print(f.read_text()) for f in pathlib.Path(os.environ['DATA_DIR']).iterdir()]"
    options = ("--engine", "podman", "--data", data, "--out", "shown")
    code, _, err = medexam("cliniqlink", "run", "image", *options, "--", sys.executable, "-c", show)
    assert code == 3
    assert "true_false.json" in err
    log = Path("shown.log").read_text()
    for hidden in ("Benign prostatic", "0.3 units", "Resistance develops", "no link", "correct_answer"):
        assert hidden not in log
    for shown in ("What is BPH?", "0.05 units", "Cycloplegia.", "Step 3: it must be.", "Spleen"):
        assert shown in log


@pytest.mark.usefixtures("engines")
@pytest.mark.parametrize("engine", ["podman", "apptainer"])
def test_a_container_is_killed_when_its_time_is_over(medexam, tmp_path, monkeypatch, engine: str) -> None:
    monkeypatch.setattr("medexam.companions.cliniqlink.container._GRACE_S", 0.0)
    data = write_cliniqlink(tmp_path / "questions")
    options = ("--engine", engine, "--data", data, "--out", "slow", "--minutes", "0.01")
    code, _, err = medexam("cliniqlink", "run", "image", *options, "--", "sleep", "600")
    assert code == 3
    assert "killed after 0.01 minutes" in err
    assert json.loads(Path("slow.json").read_text())["code"] is None


@pytest.mark.usefixtures("engines")
def test_what_cannot_run_is_refused_in_one_line(medexam, tmp_path) -> None:
    data = write_cliniqlink(tmp_path / "questions")
    Path("full").mkdir()
    Path("full/file").touch()
    for options, words in (
        (("--out", "full"), "is not empty"),
        (("--env", "TEAM"), "NAME=VALUE"),
        (("--data", tmp_path / "nothing"), "no questions"),
    ):
        code, _, err = medexam("cliniqlink", "run", "image", "--engine", "podman", "--data", data, *options)
        assert (code, err.count("\n")) == (2, 1)
        assert words in err


@pytest.mark.parametrize(
    ("engine", "gpus", "words"),
    [
        ("docker", "0,1", ["--gpus", '"device=0,1"']),
        ("docker", "all", ["--gpus", "all"]),
        ("podman", "0,1", ["--device", "nvidia.com/gpu=0", "--device", "nvidia.com/gpu=1"]),
        ("apptainer", "0", ["--nv", "CUDA_VISIBLE_DEVICES=0"]),
        ("docker", None, ["--network", "none", "--cap-drop", "ALL", "--memory", "8g"]),
        ("apptainer", None, ["--containall", "--net", "--network", "none", "--memory", "8g"]),
    ],
)
def test_each_engine_is_told_its_limits(tmp_path, engine: Engine, gpus: str | None, words: list[str]) -> None:
    job = _job(tmp_path, engine=engine, gpus=gpus)
    arguments = job.arguments("one")
    assert all(word in arguments for word in words)
    assert f"{tmp_path}:/data:ro" in arguments
    assert arguments[-1] == "image"
    assert gpus is not None or not {"--gpus", "--device", "--nv"} & set(arguments)


def test_a_folder_whose_name_would_be_read_as_a_mount_is_refused(tmp_path) -> None:
    with pytest.raises(SpecError, match="colon"):
        _job(tmp_path / "a:b", engine="docker", gpus=None).arguments("one")


def _job(folder: Path, *, engine: Engine, gpus: str | None) -> ContainerJob:
    return ContainerJob(
        engine=engine,
        image="image",
        questions=folder,
        outputs=folder,
        counts={"list": 1},
        minutes=1,
        memory="8g",
        gpus=gpus,
    )
