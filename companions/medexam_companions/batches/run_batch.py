"""Batches on this machine: vLLM's own `run-batch`, a process that loads the model of a profile and answers one file.

It ends with this process, since nobody could ask after it later; what it had not answered is asked again. This module
knows commands and processes, not what is asked.
"""

import asyncio
import logging
from pathlib import Path

from medexam.errors import EngineError
from medexam.serve import Launch, ServerProcess, ServerSettings, plan_servers, vllm_python
from medexam_companions.batches.batch_folder import Batch

_POLL_S = 0.5
_RUN_BATCH = ("-m", "vllm.entrypoints.openai.run_batch")
"""What `vllm run-batch` starts; the console script itself is missing from the CPU build."""

_log = logging.getLogger(__name__)


class VLLMBatches:
    """Batches that vLLM answers here, one after the other: each holds the GPUs of the profile."""

    def __init__(self, profile: str) -> None:
        """Set up the batches; `profile` is a profile's name or YAML file."""
        self._profile = profile
        self._one_at_a_time = asyncio.Lock()

    def plan(self, requests: Path, results: Path) -> Launch:
        """Plan the process that answers a file of requests: vLLM as it would be served; raises `EngineError`."""
        (launch,) = plan_servers(self._profile, ServerSettings(python=vllm_python()))
        python, _, _, *flags = launch.command
        command = (python, *_RUN_BATCH, "-i", str(requests), "-o", str(results), *flags)
        return Launch(command, address="", environment=launch.environment, model=launch.model)

    async def work(self, batch: Batch) -> None:
        """Start vLLM on the batch, wait until it ends, and keep its results."""
        async with self._one_at_a_time:
            output = batch.results.with_name(f"{batch.results.name}.part")
            output.unlink(missing_ok=True)
            launch = await asyncio.to_thread(self.plan, batch.requests, output)
            log = batch.path.with_suffix(".log")
            _log.warning("medexam: vLLM's run-batch answers %s requests; its log is %s", batch.record.requests, log)
            ended = await self._run(ServerProcess(launch, log, None, ""))
            results = output.read_bytes() if output.exists() else b""
            if results.count(b"\n") < batch.record.requests:
                raise EngineError(f"vLLM's run-batch did not answer: {ended}")
            batch.end(results, "completed")
            output.unlink()

    async def _run(self, process: ServerProcess) -> str:
        """Run the process and return how it ended, with the last lines of its log."""
        process.start()
        try:
            while True:
                await asyncio.sleep(_POLL_S)
                try:
                    process.check_alive()
                except EngineError as error:
                    return str(error)
        finally:
            # Shielded: a second cancellation must not leave a process behind that holds a GPU's memory.
            await asyncio.shield(asyncio.to_thread(process.stop))
