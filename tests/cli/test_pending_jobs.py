"""A run whose servers' job is pending: it waits and says so, asks nothing, and uses a server that comes late."""

import json
import logging
import os
from pathlib import Path
from socket import gethostname

from wire_server import Wire, serving

from medexam.serve import TIMING, RegisteredServer, Registry


def test_a_run_outlasts_a_pending_job(medexam, run, spec, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(TIMING, "poll_s", 0.01)
    registry = Registry(tmp_path / "servers")
    model = {"engine": "vllm", "name": "tiny", "endpoints": [f"registry:{registry.path}"], "wait_s": 86400}
    path = spec(model=model, program={"kind": "zero_shot", "answer_format": "guided"})
    with serving(Wire()) as wire:
        server = RegisteredServer(wire.address, "tiny", gethostname(), os.getpid(), job="17", ready=True)
        registry.add(server)
        (first,) = run(path, "--limit", 4)
        answers = tmp_path / first["run_dir"] / "predictions.jsonl"
        before, asked = answers.read_text(encoding="utf-8"), len(wire.requests)
        registry.remove(server)  # the job was requeued, and is pending

        class Late(logging.Handler):
            """Registers the server once the run says that it waits."""

            def emit(self, record: logging.LogRecord) -> None:
                if (
                    f"no server of tiny answers that is registered in {registry.path}; waiting 86400 s"
                    in record.getMessage()
                ):
                    assert len(wire.requests) == asked
                    registry.add(server)

        logging.getLogger("medexam").addHandler(handler := Late())
        try:
            assert medexam("run", path, "--limit", 8)[0] == 0
        finally:
            logging.getLogger("medexam").removeHandler(handler)
    after = answers.read_text(encoding="utf-8")
    assert after.startswith(before)
    assert len({json.loads(line)["question"] for line in after.splitlines()}) == len(after.splitlines()) == 8
