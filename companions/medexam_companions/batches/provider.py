"""Batches at a provider, by OpenAI's own client: upload the file, make the batch, poll it, and fetch its results.

Making a batch costs money, and a connection may be lost before the provider's reply is here. The file's id, kept before
the batch is made, tells then whether there is a batch of it already. This module knows files and statuses, not what is
asked.
"""

import asyncio
import logging
import os

from openai import APIConnectionError, AsyncOpenAI, InternalServerError, OpenAIError, RateLimitError
from openai.types import Batch as ProviderBatch

from medexam.errors import EngineError
from medexam.specs import ModelSpec
from medexam.text import hide_secrets
from medexam_companions.batches.batch_folder import URL, Batch

LONGEST_POLL_S = 60.0
_SLOWER = 1.3
_ENDED = ("completed", "failed", "expired", "cancelled")
"""Statuses after which a batch does not change any more."""
_STEP_S = 60.0
"""What one step of a connection may take."""
_ATTEMPTS = 8
_PASSING = (APIConnectionError, InternalServerError, RateLimitError)
"""What another attempt may cure."""

_log = logging.getLogger(__name__)


class HostedBatches:
    """The batches of one provider."""

    first_poll_s = 1.0
    """Before a batch is asked after first; the pauses grow from there."""

    def __init__(self, spec: ModelSpec) -> None:
        """Set up the batches; the key is where the spec says, else in the provider's usual variable."""
        key = os.environ.get(spec.api_key_env or "")
        self._client = AsyncOpenAI(api_key=key, timeout=min(spec.timeout_s, _STEP_S), max_retries=_ATTEMPTS)
        self._once = self._client.with_options(max_retries=0)

    async def work(self, batch: Batch) -> None:
        """Submit the batch unless that was done, wait for its end, and keep its results."""
        try:
            if batch.record.batch_id is None:
                await self._submit(batch)
            ended = await self._wait(batch)
            ids = filter(None, (ended.output_file_id, ended.error_file_id))
            files = [(await self._client.files.content(file_id)).content.strip() for file_id in ids]
        except OpenAIError as fault:
            raise EngineError(f"the provider's batches do not answer: {hide_secrets(str(fault))}") from None
        batch.end(b"\n".join(files), ended.status)
        if ended.status == "failed":
            faults = (ended.errors and ended.errors.data) or []
            reasons = "; ".join(dict.fromkeys(str(each.message) for each in faults)) or "no reason was given"
            raise EngineError(f"batch {ended.id} was refused as a whole: {reasons}; no question of it was asked")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _submit(self, batch: Batch) -> None:
        batch_id = None
        if batch.record.file_id is None:
            name = f"{batch.requests.parent.parent.name}-{batch.requests.name}"
            upload = (name, await asyncio.to_thread(batch.requests.read_bytes))
            batch.update(file_id=(await self._client.files.create(file=upload, purpose="batch")).id)
        else:
            batch_id = await self._find(batch.record.file_id)
        batch.update(batch_id=batch_id or await self._create(str(batch.record.file_id)), status="submitted")

    async def _create(self, file_id: str) -> str:
        for attempt in range(_ATTEMPTS):
            # The fault before may have hidden a batch that was made.
            if attempt and (batch_id := await self._find(file_id)) is not None:
                return batch_id
            try:
                made = await self._once.batches.create(completion_window="24h", endpoint=URL, input_file_id=file_id)
            except _PASSING:
                if attempt + 1 == _ATTEMPTS:
                    raise
                await asyncio.sleep(min(2.0**attempt / 2, 16.0))
            else:
                return made.id
        raise AssertionError

    async def _find(self, file_id: str) -> str | None:
        """Find the id of the batch that was made of a file; None if none was."""
        async for made in self._client.batches.list(limit=100):
            if made.input_file_id == file_id:
                return made.id
        return None

    async def _wait(self, batch: Batch) -> ProviderBatch:
        """Wait for the batch and return it as it ended; a poll that fails is followed by the next as usual."""
        pause_s, failed, batch_id = self.first_poll_s, False, str(batch.record.batch_id)
        _log.warning(
            "medexam: batch %s of %s requests may take a day: Ctrl-C loses nothing, the same command continues",
            batch_id,
            batch.record.requests,
        )
        while True:
            try:
                batch_now = await self._once.batches.retrieve(batch_id)
            except _PASSING as fault:
                if not failed:
                    _log.warning("medexam: warning: the state of batch %s cannot be read: %s", batch_id, fault)
                failed = True
            except OpenAIError as fault:
                raise EngineError(
                    f"batch {batch_id} is not known to openai ({hide_secrets(str(fault))}); use the key that "
                    f"submitted it, or remove {batch.path} to submit its requests again"
                ) from None
            else:
                failed = False
                if batch_now.status != batch.record.status:
                    batch.update(status=batch_now.status)
                if batch_now.status in _ENDED:
                    return batch_now
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * _SLOWER, LONGEST_POLL_S)
