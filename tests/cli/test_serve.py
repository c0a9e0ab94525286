"""`medexam serve`, with a package that calls itself vllm and serves nothing but `/health`."""

import shlex
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from fake_vllm import call_it_the_cpu_build, free_port, write_fake_vllm, write_model_folder

from medexam.serve import Registry, read_key_file
from waiting import BACKSTOP_S


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model folder, and a Python whose vllm is not the real one."""
    write_fake_vllm(tmp_path / "site")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MEDEXAM_VLLM_PYTHON", raising=False)
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    return write_model_folder(tmp_path)


@pytest.fixture
def cpu_build(model: Path, tmp_path: Path) -> Path:
    """The same, with a vllm that needs no GPU for each replica."""
    call_it_the_cpu_build(tmp_path / "site")
    return model


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.nightly)])
def test_it_serves_until_a_signal_and_leaves_nothing(model: Path, tmp_path: Path, number: signal.Signals) -> None:
    port = free_port()
    registry = Registry(tmp_path / "cache" / "servers.json")
    words = ["serve", str(model), "--port", str(port), "--log", str(tmp_path / "my.log")]
    command = [sys.executable, "-c", "from medexam.cli import run_command; run_command()", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        lines = [running.stdout.readline() for _ in range(2)]
        (entry,) = registry.read()
        assert httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False).status_code == 200
        assert entry.key_file is not None
        key = read_key_file(entry.key_file)
        running.send_signal(number)
        _, errors = running.communicate(timeout=BACKSTOP_S)
    assert running.returncode == 0, errors
    assert lines == [f"http://127.0.0.1:{port}/v1\n", "medexam run headqa_v1 --set model.engine=vllm --limit 200\n"]
    assert (entry.address, entry.model) == (f"http://127.0.0.1:{port}/v1", "Tiny-1B")
    assert str(entry.key_file) in errors.replace("\n", "")
    assert key not in errors
    assert errors.endswith("stopped\n")
    assert registry.read() == ()
    assert not list(tmp_path.rglob("*.key"))
    assert "with a key" in (tmp_path / "my.log").read_text()


def test_print_shows_the_commands_alone(medexam, cpu_build: Path) -> None:
    words = ("--print", "--replicas", 2, "--port", 8123, "--", "--max-logprobs", 7)
    code, output, errors = medexam("serve", cpu_build, *words)
    assert code == 0, errors
    first, second = output.splitlines()
    assert ("--port 8123 " in first, "--port 8124 " in second) == (True, True)
    assert first.endswith("--max-logprobs 7")
    assert "KEY" not in output


def script(medexam, model: object, *words: object) -> list[str]:
    """The lines of the job that `medexam serve --slurm --print` shows; bash reads them."""
    code, output, errors = medexam("serve", model, "--slurm", "--print", *words)
    assert code == 0, errors
    assert subprocess.run(["/bin/bash", "-n"], input=output, text=True, check=False).returncode == 0
    lines = output.splitlines()
    assert (lines[0], len(lines) <= 40) == ("#!/bin/bash", True)
    return lines


def test_print_shows_a_jobs_script_without_slurm(medexam, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    words = "--nodes 2 --time 1-02:00:00 --partition gpu --account me --gpus-per-node 4 --registry shared/servers.json"
    more = "--slurm-option mem=200G --slurm-option exclusive --slurm-folder slurm"
    spaced = ("--slurm-option", "comment=for exams", "--", "--x=a b")
    lines = script(medexam, model, *words.split(), *more.split(), *spaced)
    wanted = "nodes=2 time=1560 partition=gpu account=me gpus-per-node=4 cpus-per-task=20 mem=200G exclusive requeue"
    assert {f"#SBATCH --{word}" for word in wanted.split()} | {"#SBATCH --comment='for exams'"} <= set(lines)
    assert sum(line.startswith("#SBATCH --mem=") for line in lines) == 1
    here = Path.cwd()
    command = "\n".join(lines).partition("\nsrun ")[2].partition(" &\n")[0].replace("\\\n", "")
    assert shlex.split(command)[2:] == [
        *("serve", str(model), "--in-job", "--slurm-folder", f"{here}/slurm"),
        *("--registry", f"{here}/shared/servers.json", "--", "--x=a b"),
    ]
    assert not Path("slurm").exists()
    assert "#SBATCH --no-requeue" in script(medexam, model, "--requeues", 0)
    assert "sbatch is found here; submit from a machine of the cluster" in medexam("serve", model, "--slurm")[2]


def test_times_in_slurms_words(medexam, model: Path) -> None:
    for text, minutes in (("90", 90), ("90:30", 91), ("01:30:00", 90), ("2-03", 3060), ("1-00:30", 1470)):
        assert f"#SBATCH --time={minutes}" in script(medexam, model, "--time", text), text


def test_what_is_submitted_is_what_print_shows(medexam, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sbatch = tmp_path / "bin" / "sbatch"
    sbatch.parent.mkdir()
    sbatch.write_text(f'#!/bin/sh\ncp "$2" {tmp_path}/submitted\necho "77;cluster"\n', encoding="utf-8")
    sbatch.chmod(0o755)
    monkeypatch.setenv("PATH", f"{sbatch.parent}:/usr/bin:/bin")
    words = ("--nodes", 2, "--span", "--slurm-folder", tmp_path / "jobs")
    code, output, errors = medexam("serve", "llama-3.1-70b", "--slurm", *words)
    assert (code, output.startswith("77\nmedexam run ")) == (0, True), errors
    submitted = (tmp_path / "submitted").read_text(encoding="utf-8")
    assert submitted.splitlines() == script(medexam, "llama-3.1-70b", *words)
    assert "#SBATCH --gpus-per-node=2\n#SBATCH --cpus-per-task=12\n#SBATCH --mem=48000M\n" in submitted
    assert "35.3 GB of weights" in submitted
