"""vLLM's command lines, out of a profile, a hub id, a folder and SmolLM2, without vLLM."""

import sys
from pathlib import Path

import pytest
from fake_vllm import free_port

from medexam.errors import EngineError
from medexam.serve import Launch, Node, plan_server
from table_cases import read_table


def value(launch: Launch, flag: str) -> str:
    return launch.command[launch.command.index(flag) + 1]


def test_a_folder(model: Path) -> None:
    port = free_port()
    launch = plan_server(str(model), port=port, flags=["--max-model-len", "512"])
    assert str(launch) == (
        f"HF_HUB_OFFLINE=1 {sys.executable} -m vllm.entrypoints.openai.api_server --model {model} "
        f"--generation-config vllm --served-model-name Tiny-1B --host 127.0.0.1 --port {port} "
        "--max-model-len 512"
    )
    own = plan_server(str(model), flags=["--generation-config=auto"])
    assert "--generation-config" not in own.command, "what the user says is said once"
    assert (launch.address, launch.model, launch.gpus) == (f"http://127.0.0.1:{port}/v1", "Tiny-1B", ())


def test_a_hub_id_keeps_its_name_and_may_be_fetched(model: Path) -> None:
    launch = plan_server("Qwen/Qwen3-8B", ["--served-model-name", "qwen"], host="0.0.0.0")
    assert (launch.environment, launch.model) == ({}, "qwen")
    assert (launch.command[4], value(launch, "--host")) == ("Qwen/Qwen3-8B", "0.0.0.0")
    assert launch.address == f"http://127.0.0.1:{value(launch, '--port')}/v1"
    sixth = plan_server("Qwen/Qwen3-8B", host="::1", port=free_port())
    assert sixth.address.startswith("http://[::1]:")


@pytest.fixture
def four_cards(cards) -> None:
    cards(*[40.0] * 4)


@pytest.mark.usefixtures("four_cards")
def test_a_profile() -> None:
    launch = plan_server("llama-3.1-70b", port=free_port())
    command = launch.command
    assert value(launch, "--model") == launch.model == "meta-llama/Llama-3.1-70B-Instruct"
    assert value(launch, "--revision") == value(launch, "--tokenizer-revision")
    assert len(value(launch, "--revision")) == 40
    assert (value(launch, "--tensor-parallel-size"), value(launch, "--gpu-memory-utilization")) == ("4", "0.95")
    assert (value(launch, "--max-model-len"), value(launch, "--dtype")) == ("8192", "bfloat16")
    assert (value(launch, "--max-logprobs"), "--enable-prefix-caching" in command) == ("128", True)
    assert not [word for word in command if "trust" in word]
    assert launch.environment == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "0,1,2,3"}
    assert launch.gpus == (0, 1, 2, 3)
    (memory,) = launch.notes
    assert "35.3 GB of weights + 3.1 GB to compute" in memory


@pytest.mark.usefixtures("four_cards")
def test_the_cards_that_cuda_shows_are_taken_in_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1,2")
    launch = plan_server("qwen3-8b", flags=["--data-parallel-size", "2"])
    assert launch.environment["CUDA_VISIBLE_DEVICES"] == "3,1"
    assert value(launch, "--reasoning-parser") == "qwen3"
    assert len(launch.notes) == 1


@pytest.mark.usefixtures("four_cards")
def test_what_the_user_says_is_said_once() -> None:
    flags = ["-tp", "2", "--max_model_len=4096", "--no-enable-prefix-caching", "--dtype", "float16"]
    launch = plan_server("qwen3-32b", port=free_port(), flags=flags)
    assert launch.gpus == (0, 1)
    assert launch.command[-len(flags) :] == tuple(flags)
    ours = launch.command[: -len(flags)]
    assert {"--tensor-parallel-size", "--max-model-len", "--enable-prefix-caching", "--dtype"}.isdisjoint(ours)


@pytest.mark.parametrize(
    ("name", "gib", "tokens"), [("NVIDIA H100 80GB HBM3", 79.65, "16384"), ("A100-SXM4-80GB", 80.0, "4096")]
)
def test_prompts_are_read_in_large_steps(cards, name: str, gib: float, tokens: str) -> None:
    cards(gib, name=name)
    launch = plan_server("llama-3.1-8b")
    assert value(launch, "--max-num-batched-tokens") == tokens
    assert "vllm.entrypoints.openai.api_server" in launch.command
    launch = plan_server("llama-3.1-8b", flags=["-asc", "4", "--max_num_batched_tokens=2048"])
    assert launch.command[2:4] == ("vllm.entrypoints.cli.main", "serve"), "which alone knows several processes"
    assert "--max-num-batched-tokens" not in launch.command


def test_a_group_of_machines(model: Path) -> None:
    head, other = (plan_server("llama-3.1-70b", node=Node(rank, 2, "10.0.0.1"), printing=True) for rank in (0, 1))
    assert head.command[2:5] == ("vllm.entrypoints.cli.main", "serve", "meta-llama/Llama-3.1-70B-Instruct")
    assert value(other, "--node-rank") == "1"
    assert value(other, "--master-addr") == "10.0.0.1"
    assert (value(head, "--tensor-parallel-size"), value(head, "--pipeline-parallel-size")) == (
        "2",
        "2",
    )
    assert ("--headless" in head.command, "--headless" in other.command) == (False, True)
    assert (bool(head.address), other.address, other.port) == (True, "", None)
    assert head.gpus == other.gpus == (0, 1)
    unknown = plan_server("Org/Model", node=Node(0, 2, "10.0.0.1"), printing=True)
    assert value(unknown, "--pipeline-parallel-size") == "2", "of unknown size"


def test_the_cpu_build_gets_its_cache_and_block_size(cpu_build: Path) -> None:
    launch = plan_server(str(cpu_build))
    assert launch.environment["VLLM_CPU_KVCACHE_SPACE"] == "2"
    assert "VLLM_CPU_OMP_THREADS_BIND" not in launch.environment
    assert " --block-size 32" in str(launch)
    own = plan_server(str(cpu_build), flags=["--block-size=64"])
    assert "--block-size" not in own.command


def test_a_processor_without_bfloat16_computes_in_float32(cpu_build: Path) -> None:
    launch = plan_server(str(cpu_build))
    features = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    expected = () if features & {"avx512_bf16", "amx_bf16"} else ("--dtype", "float32")
    assert launch.command[launch.command.index("--no-enable-chunked-prefill") + 1 :][: len(expected)] == expected
    assert ("--dtype" in launch.command) == bool(expected)


def test_a_profile_for_cards_on_the_processor(cpu_build: Path) -> None:
    with pytest.raises(EngineError, match="build for processors: name another with --python, or try the profile"):
        plan_server("qwen3-8b")
    launch = plan_server("qwen3-8b", printing=True)
    assert "VLLM_CPU_KVCACHE_SPACE" not in launch.environment


@pytest.mark.parametrize(*read_table("refused_models"))
def test_models_that_cannot_start(model: Path, tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "hollow").mkdir()
    (tmp_path / "hollow" / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(EngineError, match=message):
        plan_server(name.format(here=tmp_path))


@pytest.mark.parametrize(*read_table("refused_flags"))
def test_what_is_refused(model: Path, flags: list[str], message: str) -> None:
    with pytest.raises(EngineError, match=message) as caught:
        plan_server(str(model), flags=flags)
    assert "canary" not in str(caught.value)


def test_a_python_without_vllm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with pytest.raises(EngineError, match=r"pip install 'vllm>=0\.29'.*--python"):
        plan_server("Qwen/Qwen3-8B")
    with pytest.raises(EngineError, match=r"has no vllm: .*--python"):
        plan_server("Qwen/Qwen3-8B", python=tmp_path / "none")
    assert plan_server("Qwen/Qwen3-8B", printing=True).command[2].startswith("vllm.")
