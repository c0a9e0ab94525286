"""Servers as jobs of a real Slurm, with a package that calls itself vllm and, where it is installed, with vLLM."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from socket import gethostname

import httpx
import pytest
from fake_vllm import write_fake_vllm, write_model_folder

from medexam.files import cache_dir
from slurm.place import Place

pytestmark = [pytest.mark.slurm, pytest.mark.nightly]


@pytest.fixture
def model(place: Place, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model folder, and a Python whose vllm is not the real one."""
    write_fake_vllm(place.folder / "site")
    paths = (str(place.folder / "site"), os.environ.get("PYTHONPATH", ""))
    place.environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    place.environment.pop("MEDEXAM_VLLM_PYTHON", None)
    return str(write_model_folder(place.folder))


def options(*pairs: str) -> list[str]:
    return [word for pair in pairs for word in ("--slurm-option", pair)]


def test_a_job_serves_registers_and_takes_itself_out_when_it_is_cancelled(place: Place, model: str) -> None:
    submitted = place.serve(model)
    job, run = submitted.stdout.splitlines()
    assert run == (
        f"medexam run headqa_v1 --set model.engine=vllm --set 'model.endpoints=[registry:{place.registry.path}]' "
        "--set model.wait_s=3600 --limit 200"
    )
    assert f"`scancel {job}` stops it" in submitted.stderr
    entry = place.registered(job)
    assert (entry.host, entry.model) == (gethostname(), "Tiny-1B")
    assert httpx.URL(entry.address).host == gethostname()
    assert httpx.get(entry.address.replace("/v1", "/health"), trust_env=False).status_code == 200
    key = entry.key
    assert key not in ("", "of-the-submitter")
    job_script = (place.logs / "medexam-Tiny-1B.sbatch").read_text()
    for text in (job_script, place.cluster.ask("scontrol", "show", "job", job), submitted.stdout, submitted.stderr):
        assert key not in text
        assert "of-the-submitter" not in text
    place.cancel(job)
    assert "stopped\n" in place.told(job)
    assert list((place.logs / f"medexam-job-{job}").glob("start-0/n1/vllm-*.log"))


def test_a_job_comes_back_after_its_walltime_and_when_it_is_requeued(place: Place, model: str) -> None:
    job = place.serve(model, *options("time=00:10:00")).stdout.splitlines()[0]
    first = place.registered(job)
    place.warn(job)
    place.leaves_registry()
    second = place.registered(job)
    assert second.pid != first.pid
    place.cluster.wait_for(lambda: place.told(job).count("healthy; runs find it") == 2, "the word of both starts")
    place.cluster.ask("scontrol", "requeue", job)
    place.leaves_registry()
    third = place.registered(job)
    assert third.pid != second.pid
    place.cancel(job)


def test_slurm_itself_warns_at_the_walltime(place: Place, model: str) -> None:
    job = place.serve(model, *options("time=00:01:00", "signal=B:USR1@15")).stdout.splitlines()[0]
    first = place.registered(job)
    place.leaves_registry()
    assert place.registered(job).pid != first.pid
    assert place.cluster.state(job) == "RUNNING", "queued again before its time was over"
    assert "TIME LIMIT" not in place.told(job)
    place.cancel(job)


@pytest.mark.parametrize(
    "words",
    [
        ("sbatch", "--partition=urgent", "--nodes=2", "--output=/dev/null", "--wrap", "sleep 2"),
        # As with `PreemptMode=CANCEL` and a `GraceTime`: the steps get TERM, the script does not; the job still runs.
        ("scancel", "--signal=TERM"),
    ],
    ids=["a more urgent job", "servers told to end"],
)
def test_a_job_comes_back_after_its_nodes_are_taken(place: Place, model: str, words: tuple[str, ...]) -> None:
    job = place.serve(model).stdout.splitlines()[0]
    first = place.registered(job)
    place.cluster.ask(*words, *([job] if words[0] == "scancel" else []))
    place.leaves_registry()
    assert place.registered(job).pid != first.pid
    place.cancel(job)


def test_every_node_serves_and_all_come_back_together(place: Place, model: str) -> None:
    job = place.serve(model, "--nodes", "2").stdout.splitlines()[0]
    first = place.all_registered(job, 2)
    assert len({entry.key for entry in first}) == 2
    place.warn(job)
    place.leaves_registry()
    second = place.all_registered(job, 2)
    assert {entry.pid for entry in first}.isdisjoint(entry.pid for entry in second)
    place.cancel(job)


def test_a_job_that_came_back_often_enough_serves_to_its_end(place: Place, model: str) -> None:
    job = place.serve(model, *options("no-requeue", "time=00:05:00")).stdout.splitlines()[0]
    entry = place.registered(job)
    place.warn(job)
    place.cluster.wait_for(lambda: "the job is not queued again" in place.told(job), "the warning to be heard")
    assert [one.pid for one in place.registry.read()] == [entry.pid]
    assert place.cluster.state(job) == "RUNNING"
    place.cancel(job)


def test_a_server_that_dies_is_in_the_jobs_log_and_exit_code(place: Place, model: str) -> None:
    job = place.serve(model, "--", "--die", "all").stdout.splitlines()[0]
    place.cluster.wait_for(lambda: place.cluster.state(job) == "FAILED", "the job's end")
    assert place.cluster.exit_code(job) == "2:0"
    assert "the server ended with exit code 1; the last lines of" in place.told(job)
    assert "no weights: all" in place.told(job)
    assert "Traceback" not in place.told(job)
    assert place.registry.read() == ()
    assert not list(place.registry.path.glob("*"))
    place.cluster.wait_for(lambda: not place.processes(), "no process left")


@pytest.mark.parametrize("hidden", ["registry", "logs"])
def test_a_shared_folder_that_is_not_shared(place: Place, model: str, hidden: str) -> None:
    folder = place.folder / hidden
    folder.mkdir()
    apart = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(folder))
    if not shutil.which("unshare") or subprocess.run([*apart, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount a folder that others do not see")
    job = place.serve(model, before=apart).stdout.splitlines()[0]
    place.cluster.wait_for(lambda: place.cluster.state(job) == "FAILED", "the job's end")
    assert place.cluster.exit_code(job) == "2:0"
    assert f"medexam: n1 does not see {folder}/" in place.told(job)
    assert place.registry.read() == ()


def test_slurm_refuses_the_job(place: Place, model: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as raised:
        place.serve(model, *options("partition=nowhere"))
    assert raised.value.returncode == 2
    assert raised.value.stderr.startswith("medexam: Slurm refuses `sbatch")
    assert "invalid partition" in raised.value.stderr
    assert raised.value.stderr.count("\n") == 1


@pytest.mark.vllm_env
def test_vllm_answers_a_run_from_a_job(place: Place, tmp_path: Path) -> None:
    if "MEDEXAM_VLLM_PYTHON" not in os.environ:
        pytest.skip("no vLLM: name a Python that has it with MEDEXAM_VLLM_PYTHON")
    (cache_dir() / "models").mkdir(parents=True, exist_ok=True)
    (place.folder / "models").symlink_to(cache_dir() / "models")  # so that SmolLM2 is not unpacked again
    job = place.serve("smollm2-cpu", "--", "--max-model-len", "2048").stdout.splitlines()[0]
    entry = place.registered(job, 1200)
    assert httpx.get(f"{entry.address}/models", trust_env=False).status_code == 401
    key = {"Authorization": f"Bearer {entry.key}"}
    (model,) = httpx.get(f"{entry.address}/models", headers=key, trust_env=False).json()["data"]
    assert model["id"] == entry.model
    settings = ["model.engine=vllm", f"model.endpoints=[registry:{place.registry.path}]", "dataset.name=headqa_sample"]
    words = [word for setting in settings for word in ("--set", setting)]
    ran = subprocess.run(
        place.command("run", "headqa_v1", *words, "--limit", "10", "--runs-dir", str(tmp_path / "runs"), "--json"),
        env={key: value for key, value in place.environment.items() if key != "VLLM_API_KEY"},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)
    place.cancel(job)
