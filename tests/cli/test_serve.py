"""`medexam serve`, with a package that calls itself vllm and serves nothing but `/health`."""

import shlex
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from fake_vllm import call_it_the_cpu_build, free_port, write_fake_vllm, write_model_folder

from medexam.serve import Registry
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
    registry = Registry(tmp_path / "cache" / "servers")
    words = ["serve", str(model), "--port", str(port), "--folder", str(tmp_path)]
    command = [sys.executable, "-c", "from medexam.cli import run_command; run_command()", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        lines = [running.stdout.readline() for _ in range(2)]
        (entry,) = registry.read()
        assert httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False).status_code == 200
        running.send_signal(number)
        _, errors = running.communicate(timeout=BACKSTOP_S)
    assert running.returncode == 0, errors
    assert lines == [f"http://127.0.0.1:{port}/v1\n", "medexam run headqa_v1 --set model.engine=vllm --limit 200\n"]
    assert (entry.address, entry.model) == (f"http://127.0.0.1:{port}/v1", "Tiny-1B")
    assert str(registry.path) in errors.replace("\n", "")
    assert entry.key not in errors
    assert errors.endswith("stopped\n")
    assert registry.read() == ()
    assert not list(registry.path.iterdir())
    assert "with a key" in (tmp_path / f"vllm-{port}.log").read_text()


def test_print_shows_the_commands_alone(medexam, cpu_build: Path) -> None:
    words = ("--print", "--port", 8123, "--", "--max-logprobs", 7)
    code, output, errors = medexam("serve", cpu_build, *words)
    assert code == 0, errors
    (line,) = output.splitlines()
    assert "--port 8123 " in line
    assert line.endswith("--max-logprobs 7")
    assert "KEY" not in output


def script(medexam, model: object, *words: object) -> list[str]:
    """The lines of the job that `medexam serve --slurm --print` shows; bash reads them."""
    code, output, errors = medexam("serve", model, "--slurm", "--print", *words)
    assert code == 0, errors
    assert subprocess.run(["/bin/bash", "-n"], input=output, text=True, check=False).returncode == 0
    lines = output.splitlines()
    assert (lines[0], len(lines) <= 48) == ("#!/bin/bash", True)
    return lines


def test_print_shows_a_jobs_script_without_slurm(medexam, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    words = "--nodes 2 --registry shared/servers --folder slurm"
    options = ["time=1-02:00:00", "partition=gpu", "account=me", "gpus-per-node=4", "mem=200G", "exclusive"]
    options = [word for option in (*options, "comment=for exams") for word in ("--slurm-option", option)]
    lines = script(medexam, model, *words.split(), *options, "--", "--x=a b")
    wanted = (
        "nodes=2 time=1-02:00:00 partition=gpu account=me gpus-per-node=4 cpus-per-task=20 mem=200G exclusive requeue"
    )
    assert {f"#SBATCH --{word}" for word in wanted.split()} | {"#SBATCH --comment='for exams'"} <= set(lines)
    assert sum(line.startswith("#SBATCH --mem=") for line in lines) == 1
    here = Path.cwd()
    command = "\n".join(lines).partition("\nsrun ")[2].partition(" &\n")[0].replace("\\\n", "")
    assert shlex.split(command)[2:] == [
        *("serve", str(model), "--in-job", "--folder", f"{here}/slurm"),
        *("--registry", f"{here}/shared/servers", "--", "--x=a b"),
    ]
    assert not Path("slurm").exists()
    assert "#SBATCH --no-requeue" in script(medexam, model, "--slurm-option", "no-requeue")
    assert "sbatch is found here; submit from a machine of the cluster" in medexam("serve", model, "--slurm")[2]


def test_what_is_submitted_is_what_print_shows(medexam, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sbatch = tmp_path / "bin" / "sbatch"
    sbatch.parent.mkdir()
    sbatch.write_text(f'#!/bin/sh\ncp "$2" {tmp_path}/submitted\necho "77;cluster"\n', encoding="utf-8")
    sbatch.chmod(0o755)
    monkeypatch.setenv("PATH", f"{sbatch.parent}:/usr/bin:/bin")
    words = ("--nodes", 2, "--span", "--folder", tmp_path / "jobs")
    code, output, errors = medexam("serve", "llama-3.1-70b", "--slurm", *words)
    assert (code, output.startswith("77\nmedexam run ")) == (0, True), errors
    submitted = (tmp_path / "submitted").read_text(encoding="utf-8")
    assert submitted.splitlines() == script(medexam, "llama-3.1-70b", *words)
    assert "#SBATCH --gpus-per-node=2\n#SBATCH --cpus-per-task=12\n#SBATCH --mem=48G\n" in submitted
    assert "35.3 GB of weights" in submitted


def test_the_job_is_started_with_the_words_that_were_given(medexam) -> None:
    given = ["--python", "/a b/python", "--registry", "/shared/servers", "--folder", "/jobs"]
    flags = ["--", "--served-model-name", "my model", "--max-model-len", "4096"]
    code, out, err = medexam("serve", "llama-3.1-8b", "--slurm", "--print", *given, *flags)
    assert code == 0, err
    command = " ".join(out.replace("\\\n", " ").split())
    assert all(
        word.replace("/a b/python", "'/a b/python'").replace("my model", "'my model'") in command
        for word in [*given, *flags]
    )
