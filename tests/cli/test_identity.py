"""A run holds the answers of one model: what is another run, what is refused, and what goes on without a question."""

import json
from pathlib import Path
from socket import gethostname

import pytest
from wire_server import Wire, serving

from medexam.serve import TIMING, RegisteredServer, Registry


@pytest.fixture
def ask(medexam, spec):
    """Run questions of the sample against servers; gives the exit code, the run as `--json` tells it, and errors."""

    def run(*wires: Wire, limit: int, options: tuple[str, ...] = (), **model: object):
        model = {"engine": "vllm", "endpoints": [wire.address for wire in wires], **model}
        program = {"kind": "zero_shot", "answer_format": "guided"}
        path = spec(dataset={"name": "headqa_sample"}, model=model, program=program)
        code, out, err = medexam("run", path, "--limit", limit, "--json", *options)
        return code, json.loads(out)[0] if code == 0 else None, err

    return run


def prints(run: dict) -> list[str]:
    lines = (Path(run["run_dir"]) / "predictions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["answered_by"] for line in lines]


def test_another_model_behind_one_address_is_another_run_and_a_name_is_the_served_one(ask) -> None:
    with serving(Wire(models=("a",))) as wire:
        _, first, _ = ask(wire, limit=4)
        asked = len(wire.bodies("/v1/completions"))
        _, named, _ = ask(wire, limit=4, name="a")
        assert (named["run_dir"], len(wire.bodies("/v1/completions"))) == (first["run_dir"], asked)
        wire.models = ("b",)
        _, second, _ = ask(wire, limit=6)
    assert [(run["model"], run["metrics"]["n"]) for run in (first, second)] == [("a", 4), ("b", 6)]
    assert first["run_dir"] != second["run_dir"]


def test_answers_whose_model_is_unknown_are_not_gone_on_with(ask) -> None:
    with serving(Wire()) as wire:
        _, first, _ = ask(wire, limit=2)
        (Path(first["run_dir"]) / "models.json").unlink()
        code, _, err = ask(wire, limit=4)
        assert (code, "its 2 answers are of a model that no models.json names" in err) == (2, True)


def test_an_alias_with_other_weights_is_refused(ask, run) -> None:
    with serving(Wire()) as wire:
        _, first, _ = ask(wire, limit=4)
        wire.drift = 0.3
        code, _, err = ask(wire, limit=6)
        assert code == 2
        for part in (first["run_id"], "its 4 answers are of tiny", "0.300 nats a token", "--fresh"):
            assert part in err.splitlines()[-1]
        assert len(prints(first)) == 4
        run("--resume", first["run_dir"])  # nothing is pending, so nobody is asked
        _, fresh, _ = ask(wire, limit=6, options=("--fresh",))
    assert fresh["run_dir"] != first["run_dir"]
    assert len(set(prints(fresh))) == 1


def test_the_same_model_goes_on_elsewhere(ask) -> None:
    change = {"version": "0.99.0", "context": 2048, "metrics": "x"}
    with serving(Wire()) as wire:
        _, first, _ = ask(wire, limit=4)
    with serving(Wire(**change)) as moved, serving(Wire(**change)) as replica:
        _, run, _ = ask(moved, replica, limit=6)
    assert (run["run_dir"], run["metrics"]["n"], len(set(prints(run)))) == (first["run_dir"], 6, 1)


def test_servers_of_two_models_under_one_name_are_refused(ask) -> None:
    with serving(Wire()) as one, serving(Wire(drift=0.3)) as other:
        code, _, err = ask(one, other, limit=4)
    assert (code, "serve different models, or one in different ways" in err) == (2, True)


def test_a_registered_server_of_another_model_stays_out(ask, tmp_path, monkeypatch) -> None:
    registry = Registry(tmp_path / "servers")
    monkeypatch.setattr(TIMING, "poll_s", 0.01)
    with serving(Wire()) as one, serving(Wire(drift=0.3)) as other:
        registry.add(RegisteredServer(one.address, "tiny", gethostname(), 1))

        class Adding(list):
            """Registers the other server at the first question."""

            def append(self, request):
                if request[0] == "/v1/completions":
                    registry.add(RegisteredServer(other.address, "tiny", gethostname(), 1))
                super().append(request)

        one.requests = Adding()
        _, run, _ = ask(limit=40, endpoints=[f"registry:{registry.path}"])
    assert (run["metrics"]["n"], len(set(prints(run)))) == (40, 1)
